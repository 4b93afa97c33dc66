// The reader answers lookups, scans and counts from the super versions. It takes no lock: a read
// pins the present super version, takes the visible sequence and goes through the sources, newest
// first (db/version/lookup.h).
//
// A result may depend on writes that are not durable yet. It carries the sequence that it depends
// on (durable_after), or the reader waits for that sequence if the options ask for it. If the log
// fails during a read and the result can never become durable, the reader reads again, as of what
// is durable.
//
// The reader hides keys that have expired by the store's clock, and leaves a mark in the log when
// it finds one (db/expiry/clock_watermark.h).
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

// The parts of the engine that the reader depends on. All outlive it.
struct ReaderParts {
  SuperVersions* versions = nullptr;
  LogView* log = nullptr;
  StoreClock* clock = nullptr;
  ClockWatermark* watermark = nullptr;
  ExpirySweeper* sweeper = nullptr;
  KeyCounter* counter = nullptr;
  SegmentCaches* caches = nullptr;
  // Called when a wait for the log fails, so that the pipeline refuses writes if the log has
  // failed.
  std::function<void()> note_log_failure;
};

class Reader {
 public:
  explicit Reader(ReaderParts parts)
      : parts_(std::move(parts)),
        versions_(*parts_.versions),
        log_(*parts_.log),
        clock_(*parts_.clock) {}

  // The functions of Store of the same names (include/varve/store.h). All may throw std::bad_alloc.
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
  std::optional<KeyGrouping> GroupsOf(NamespaceId space) const;

  // How many keys were looked up.
  uint64_t gets() const { return gets_.Sum(); }

 private:
  class MultiRead;  // db/engine/multi_get.cc

  // Waits, if the options ask for it, until a result may leave the library. `unwritten` says that
  // the result may show an unsynced write whose record the kernel does not have yet.
  absl::Status Await(const ReadOptions& options, SequenceNumber durable_after, bool unwritten);
  // Returns whether a read that can never become durable can be answered as of what is durable.
  bool WorthReadingAgain(const ReadOptions& options, bool log_had_failed) const;
  // Returns whether the record has expired and the reader had not read the clock (`*instant_ms` is
  // 0) before it found the record. Then this function stores the clock's time there, and the reader
  // looks the key up again: a record counts as expired only if it was found after the clock was
  // read.
  bool NeedsInstant(const Lookup& lookup, uint64_t* instant_ms) const;
  // Makes the result from the record that was found, if any. A newer range tombstone or an expiry
  // up to `instant_ms` hides the record. The result depends on the newest of the three.
  void BuildResult(const SuperVersion& state, SequenceNumber at, uint64_t instant_ms,
                   const Lookup& lookup, ReadResult* result, std::string* value,
                   bool* unwritten) const;
  // Returns the cache through which a scan takes separated values; null if it copies them out of
  // mappings, since the cache does not hold all data with room to spare.
  ClockCache* CacheOfValues(const SuperVersion& state) const;
  static void AddMetadata(const Lookup& lookup, ReadResult* result);
  absl::StatusOr<KeyCounts> CountRange(const ReadOptions& options, std::string_view lower,
                                       std::string_view upper, SequenceNumber* at,
                                       SequenceNumber* durable_after);

  const ReaderParts parts_;
  SuperVersions& versions_;
  LogView& log_;
  StoreClock& clock_;
  ShardedCounter gets_;
};

}  // namespace varve
