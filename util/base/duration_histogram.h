// A duration histogram counts how often something took how long, for events that are rarer than
// requests: syncs, flushes, merges.
//
// Thread-safety: all threads may use an object at once. An addition costs two atomic additions.
// Invariants: no count is ever lost, and none decreases.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "varve/store_observation.h"

namespace varve {

class DurationHistogram {
 public:
  void Record(uint64_t nanos) {
    buckets_[DurationCounts::BucketOf(nanos)].fetch_add(1, std::memory_order_relaxed);
    nanos_.fetch_add(nanos, std::memory_order_relaxed);
  }

  DurationCounts Read() const {
    DurationCounts counts;
    for (size_t i = 0; i < buckets_.size(); ++i)
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    counts.nanos = nanos_.load(std::memory_order_relaxed);
    return counts;
  }

 private:
  std::array<std::atomic<uint64_t>, DurationCounts::kBuckets> buckets_{};
  std::atomic<uint64_t> nanos_{0};
};

}  // namespace varve
