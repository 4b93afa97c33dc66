// The contents of the manifest as plain values; db/version/manifest.h reads and writes them.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "db/format/key_counts.h"
#include "db/format/log_end.h"
#include "db/format/namespace_forks.h"
#include "db/format/segment_info.h"
#include "db/format/time_mark.h"
#include "type/tree_key.h"
#include "varve/changes.h"
#include "varve/namespace.h"
#include "varve/types.h"

namespace varve {

struct ManifestNamespace {
  NamespaceId id = kDefaultNamespace;
  NamespaceGeneration generation = 0;
};

// A generation that its namespace no longer lives in; kNoGeneration if there was no such namespace.
// It is remembered until the change is in segments, no snapshot is older, and no version before the
// change can be read any more.
struct RetiredGeneration {
  NamespaceId space = kDefaultNamespace;
  NamespaceGeneration generation = 0;
  SequenceNumber retired_at = kNoSequence;
  // The description of the namespace if it was dropped; null: it was not.
  std::shared_ptr<const NamespaceDescription> dropped;
};

// A history point says how many bytes of keys and values were written to a namespace behind the
// point before and up to a version.
struct HistoryPoint {
  SequenceNumber last = kNoSequence;
  uint64_t bytes = 0;

  friend bool operator==(const HistoryPoint&, const HistoryPoint&) = default;
};

// The horizon of a namespace whose versions are kept (db/history/horizons.h).
struct Horizon {
  NamespaceId space = kDefaultNamespace;
  SequenceNumber first = kNoSequence;  // the oldest version that can be read
  HistoryLimits limits;
  std::vector<HistoryPoint> points;  // ascending, behind `first`
  bool is_whole = false;             // nothing of the namespace is older than `first`

  friend bool operator==(const Horizon&, const Horizon&) = default;
};

// A change file (db/changes/change_file.h), as far as it holds.
struct ChangeFilePlace {
  uint64_t number = 0;
  uint64_t size = 0;
  SequenceNumber after = kNoSequence;  // the file covers the versions behind this one ...
  SequenceNumber last = kNoSequence;   // ... up to this one
  uint64_t last_ms = 0;                // the instant of its last commit

  friend bool operator==(const ChangeFilePlace&, const ChangeFilePlace&) = default;
};

// The changes that the store retains: those behind the version `first`, in files that follow each
// other and, behind them, in the log.
struct RetainedChanges {
  bool on = false;
  SequenceNumber first = kNoSequence;
  std::vector<ChangeFilePlace> files;  // ascending

  friend bool operator==(const RetainedChanges&, const RetainedChanges&) = default;
};

struct Manifest {
  uint64_t store_id = 0;                          // random at creation; log files carry it too
  uint64_t next_file_number = 1;                  // for logs and segments alike
  SequenceNumber flushed_sequence = kNoSequence;  // every operation up to here is in segments
  NamespaceGeneration next_generation = 1;
  // The instant that the store's clock has reached (db/expiry/store_clock.h).
  uint64_t clock_mark = 0;
  std::vector<ManifestNamespace> namespaces;       // ascending by id
  std::vector<NamespaceDescription> descriptions;  // ascending by id, of some of them
  NamespaceId next_named_namespace = kFirstNamedNamespace;
  std::vector<NamespaceFork> forks;  // ascending by generation (db/format/namespace_forks.h)
  // The keys that a parent held at the fork point, if that is known, by the forked generation.
  GenerationKeyCounts parent_counts;
  std::vector<LogEnd> log_ends;  // log files that will not be written any more, with their ends
  bool clean_end = false;        // the last of log_ends is the end of a clean stop
  // Level -> run (newest first) -> segment.
  std::vector<std::vector<std::vector<SegmentInfo>>> levels;
  std::vector<CountedGroup> counted_groups;  // db/counting/segment_key_counts.h
  // The key counts say how many keys expire. False: the manifest is of a version that had no place
  // for that.
  bool counts_expiry = true;

  // --- From format 5 on ---
  // The store writes what only programs with history read: manifests of version 5 and logs with
  // time marks. New stores do; older ones go on in their format until somebody finalizes their
  // upgrade (EngineOptions::finalize_upgrade).
  bool has_history = false;
  // Segments may hold parts of keys once (db/format/key_base.h): version 7. New stores do that;
  // others begin with it when their upgrade is finalized.
  bool shares_keys = false;
  uint64_t history_id = 0;  // random at creation; another one where versions were taken back
  TimeFilePlace times;
  std::vector<Horizon> horizons;           // ascending by id
  std::vector<RetiredGeneration> retired;  // oldest first: those that horizons keep
  RetainedChanges changes;
  std::vector<FeedPlace> feeds;  // ascending by name
};

// Returns a random history id. It is never 0, which means that there is none, and is positive as a
// signed number, which clients take it for.
uint64_t NewHistoryId();

// Returns whether a segment may hold keys that expire, as far as the index of expiries tells.
bool MayHoldExpiries(const Manifest& manifest);
// Makes the segments of a manifest that does not count expiries uncounted where keys may expire.
void ForgetCountsWithoutExpiry(Manifest* manifest);

}  // namespace varve
