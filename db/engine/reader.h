// The reader answers lookups, scans and counts from the super versions. It takes no lock: a read
// pins the present super version, takes the visible sequence and goes through the sources, newest
// first (db/version/lookup.h).
//
// A result may depend on writes that are not durable yet. It carries the sequence that it depends
// on (durable_after), or the reader waits for it if the options ask for that. A read during which
// the log failed, and which can never become durable, is done again on what is durable.
//
// Keys whose time is over are hidden by the store's clock; finding one leaves a mark
// (db/expiry/clock_watermark.h).
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/counting/key_counter.h"
#include "db/expiry/clock_watermark.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/expiry/store_clock.h"
#include "db/segment/segment_caches.h"
#include "db/version/log_view.h"
#include "db/version/lookup.h"
#include "db/version/read_point.h"
#include "db/version/super_versions.h"
#include "util/base/sharded_counter.h"
#include "varve/store.h"

namespace varve {

// The parts of the engine that the reader stands on. All outlive it.
struct ReaderParts {
  SuperVersions* versions = nullptr;
  LogView* log = nullptr;
  StoreClock* clock = nullptr;
  ClockWatermark* watermark = nullptr;
  ExpirySweeper* sweeper = nullptr;
  KeyCounter* counter = nullptr;
  SegmentCaches* caches = nullptr;
  // Refuses writes if the log has failed; called when a wait for it fails.
  std::function<void()> note_log_failure;
};

class Reader {
 public:
  explicit Reader(ReaderParts parts)
      : parts_(std::move(parts)),
        versions_(*parts_.versions),
        log_(*parts_.log),
        clock_(*parts_.clock) {}

  // As the functions of Store (include/varve/store.h). All may throw std::bad_alloc.
  [[nodiscard]] absl::StatusOr<ReadResult> Get(const ReadOptions& options, std::string_view key,
                                               std::string* value);
  [[nodiscard]] absl::StatusOr<ExplainedRead> ExplainGet(const ReadOptions& options,
                                                         std::string_view key);
  [[nodiscard]] absl::Status MultiGet(const ReadOptions& options,
                                      absl::Span<const std::string_view> keys,
                                      absl::Span<MultiGetResult> results);
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper, SequenceNumber* durable_after);
  std::shared_ptr<const Snapshot> GetSnapshot();
  [[nodiscard]] absl::StatusOr<CountResult> Count(const ReadOptions& options,
                                                  std::string_view lower, std::string_view upper);
  [[nodiscard]] NamespaceList Namespaces() const;
  bool HasNamespace(NamespaceId space) const;
  uint64_t UsualExpiry(NamespaceId space) const;

  // How many keys were looked up.
  uint64_t gets() const { return gets_.Sum(); }

 private:
  class MultiRead;  // db/engine/multi_get.cc

  // Waits, if the options ask for it, until a result may leave the library. `unwritten`: it may
  // show something of a mode without sync that is not with the kernel yet.
  absl::Status Await(const ReadOptions& options, SequenceNumber durable_after, bool unwritten);
  // Returns whether a read that can never become durable can be answered as of what is durable.
  bool WorthReadingAgain(const ReadOptions& options, bool log_had_failed) const;
  // Returns whether the record, found by a reader at `*instant_ms` (0: it has not looked at the
  // clock), has to be looked up again after a look at the clock, which this function takes: only
  // what was still there when the clock was read is known to have expired.
  bool NeedsInstant(const Lookup& lookup, uint64_t* instant_ms) const;
  // Turns what was found into the answer: a newer range tombstone or an expiry up to `instant_ms`
  // hides it, and the result depends on the newest of all.
  void Conclude(const SuperVersion& state, SequenceNumber at, uint64_t instant_ms,
                const Lookup& lookup, ReadResult* result, std::string* value,
                bool* unwritten) const;
  absl::StatusOr<KeyTally> CountRange(const ReadOptions& options, std::string_view lower,
                                      std::string_view upper, SequenceNumber* at,
                                      SequenceNumber* durable_after);

  const ReaderParts parts_;
  SuperVersions& versions_;
  LogView& log_;
  StoreClock& clock_;
  ShardedCounter gets_;
};

}  // namespace varve
