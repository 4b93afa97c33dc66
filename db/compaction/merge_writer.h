// The merge writer is the one way in which records get into segments: flushes, compactions and
// range compactions write through here.
//
// It reads a cursor in the order of the tree and writes what somebody can still see:
//   1. Snapshots cut the sequences into stripes; within a stripe nobody can tell versions of a key
//      apart, so only the newest one survives. What is newer than all snapshots is the newest
//      stripe: the present.
//   2. A record under a range tombstone of its own stripe is dropped; each stretch of keys keeps
//      the newest range tombstone of each stripe.
//   3. Tombstones go when nothing older than the inputs overlaps them (`drops_tombstones`) and they
//      belong to the oldest stripe: everything that they hid in the inputs is dropped with them.
//   4. A fork point of a clone acts as a snapshot in the parent generation, and in a
//      clone's no tombstone goes (db/format/namespace_forks.h).
//   5. Above the horizon of a generation (db/history/horizons.h) each sequence is a stripe of its
//      own.
//   6. Records of dead generations go; the filter is asked about the rest.
//   7. What is purged (db/compaction/purge.h) goes, whoever could see it.
// Sequences are never changed, and values that lie elsewhere are not read, except for a filter or
// to be moved. db/compaction/merge_compression.h has the rules for compressed values. Memory: the
// range tombstones and a segment builder.
//
// Thread-safety: a function without state of its own.
// Invariants: outputs ascend and are disjoint; versions of one key are in one output.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "db/compaction/merge_compression.h"
#include "db/format/internal_iterator.h"
#include "db/format/namespace_forks.h"
#include "db/format/range_tombstone.h"
#include "db/history/horizons.h"
#include "db/segment/segment_builder.h"
#include "type/tree_key.h"
#include "util/os/file_system.h"
#include "varve/compaction_filter.h"
#include "varve/types.h"

namespace varve {

struct PurgedKey;
struct SegmentCaches;
class ValueSeparation;

struct MergeOptions {
  FileSystem* file_system = nullptr;
  std::string directory;
  SegmentCaches* caches = nullptr;  // where the outputs' indexes wait to be opened; may be null
  SpareFiles* spares = nullptr;     // over which outputs are written; may be null
  std::function<uint64_t()> next_file_number;
  // Bytes at which the next segment begins; never between the versions of one key.
  uint64_t segment_size = 128u << 20;
  // The most records that may go in, and their average size in bytes (0: unknown).
  uint64_t expected_entries = 0;
  uint64_t average_record_size = 0;
  // How many bytes of these records go into no segment.
  uint64_t bytes_elsewhere = 0;
  // The tree keys whose records are merged, [lower, upper); empty: no bound. The merge reads no
  // others, and `tombstones` lie within.
  std::string lower, upper;
  // Keys that no segment reaches across, ascending: the first keys of the segments between which
  // the output has to fit.
  std::vector<std::string> boundaries;

  std::vector<SequenceNumber> snapshots;  // those held, ascending
  // Returns whether a generation is live now or in one of the snapshots; null: all are.
  std::function<bool(NamespaceGeneration)> is_live;
  NamespaceForks forks;  // forks of the live generations
  KeptVersions kept;     // by horizons
  bool drops_tombstones = false;
  bool shares_keys = false;  // of the outputs' builders
  const CompactionFilter* filter = nullptr;
  const PurgedKey* purged = nullptr;  // null: nothing is
  CompressionOptions compression;
  // Decides where values go; null: they stay where they are.
  ValueSeparation* separation = nullptr;
  const std::atomic<bool>* cancel = nullptr;  // Aborted soon after it is set
  std::function<void()> rest;                 // called every now and then; may be empty
  // Called before the merge takes locks for which others wait: those of the directory and of the
  // caches, where an output begins and where it ends; may be empty.
  std::function<void()> hurry;
};

struct MergeResult {
  std::vector<SegmentInfo> segments;  // ascending and disjoint, on disk; none if nothing survived
  uint64_t records_read = 0;          // without what was skipped unread
  uint64_t records_written = 0;
  bool filtered = false;  // the filter dropped something
  uint64_t records_purged = 0;
  // The keys and values of the records written, in bytes, by generation, ascending.
  std::vector<std::pair<NamespaceGeneration, uint64_t>> written;
};

// Merges. After an error no output is left.
// Requires: `tombstones` are all range tombstones of the inputs.
[[nodiscard]] absl::StatusOr<MergeResult> MergeToSegments(InternalIterator* input,
                                                          std::vector<RangeTombstone> tombstones,
                                                          const MergeOptions& options);

}  // namespace varve
