// The observation of a store is what it tells a monitor that asks each second: figures, times and
// estimates that it has in memory.
//
// Thread-safety: plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "varve/types.h"

namespace varve {

// How often something took how long, in buckets whose bounds stay the same for ever.
struct DurationCounts {
  // The longest durations of the buckets, in nanoseconds: 10 µs to 10 s, three in each power of
  // ten. One more bucket holds what took longer.
  static constexpr std::array<uint64_t, 19> kBounds{
      10'000,        21'500,        46'400,        100'000,       215'000,
      464'000,       1'000'000,     2'150'000,     4'640'000,     10'000'000,
      21'500'000,    46'400'000,    100'000'000,   215'000'000,   464'000'000,
      1'000'000'000, 2'150'000'000, 4'640'000'000, 10'000'000'000};
  static constexpr size_t kBuckets = kBounds.size() + 1;

  // Returns the bucket of a duration.
  static constexpr size_t BucketOf(uint64_t nanos) {
    size_t bucket = 0;
    while (bucket < kBounds.size() && nanos > kBounds[bucket]) ++bucket;
    return bucket;
  }
  uint64_t count() const {
    uint64_t sum = 0;
    for (const uint64_t bucket : buckets) sum += bucket;
    return sum;
  }

  std::array<uint64_t, kBuckets> buckets{};
  uint64_t nanos = 0;  // all durations together
};

// A namespace and about how much it holds: overwritten and deleted records count until a merge
// removes them, and those of a clone's parent do not count.
struct NamespaceEstimate {
  NamespaceId id = kDefaultNamespace;
  std::string name;  // the number of a database as text
  uint64_t keys = 0;
  uint64_t bytes = 0;
  uint64_t expiring = 0;  // those of the keys that expire, as if they were everywhere as frequent
  // The mean of the instants at which these expire, in milliseconds since the epoch.
  uint64_t mean_expiry_ms = kNoExpiry;
};

struct StoreObservation {
  std::vector<std::pair<std::string, uint64_t>> figures;  // some of StoreUpkeep::Statistics()
  DurationCounts syncs;
  DurationCounts flushes;
  DurationCounts merges;
  std::vector<uint64_t> segments_by_level;
  std::vector<NamespaceEstimate> namespaces;  // ascending by id
  uint64_t sync_busy_nanos = 0;               // of the store's life so far, with a sync under way
  uint64_t sync_wait_nanos = 0;               // since the sync that is under way, if any, began
  double flush_pressure = 0;                  // the part of the pressure that waiting flushes make
  double merge_pressure = 0;                  // the part that merges make
  uint64_t damaged_segments = 0;  // in which a read has found damage since the store was opened
  bool disk_is_full = false;      // the log, a flush or a merge found no space at its last attempt
};

}  // namespace varve
