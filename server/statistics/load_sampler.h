// The load sampler turns figures that only grow into what the server did in the last second or two,
// and finds out what limits it. It is asked each second; where nobody asks for longer, its answer
// is about the time since it was last asked.
//
// Thread-safety: all threads may use a sampler at once; LimitOf() is pure.
// Invariants: earlier_ is at least kWindow older than later_, but for the time before the first
// question.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

// The figures at one moment.
struct LoadSample {
  std::chrono::steady_clock::time_point at{};
  std::vector<int64_t> loop_idle_nanos;  // of each I/O loop
  std::vector<int64_t> pool_idle_nanos;  // of each thread of the pool
  uint64_t sync_busy_nanos = 0;
  uint64_t sync_wait_nanos = 0;  // since a sync ended, with one under way
  uint64_t loop_wait_nanos = 0;  // for which the disk has held up an I/O loop so far
  uint64_t connections_refused = 0;
  uint64_t commands_refused = 0;  // by maxmemory
  uint64_t connections = 0;       // open now
  uint64_t max_connections = 0;
  double flush_pressure = 0;
  double merge_pressure = 0;
  bool disk_is_full = false;
  bool data_is_full = false;  // the store holds more than maxmemory
  bool log_failed = false;
  bool store_is_crowded = false;   // connections wait until a store on other machines has room
  uint32_t store_busy_millis = 0;  // for which it has had requests; begins anew after 49 days
};

// The latest sample, and what was going on until then.
struct Load {
  LoadSample now;
  double seconds = 0;                // of the time that the shares are about
  double loop_busy = 0;              // the share of it in which the busiest I/O loop worked
  double pool_busy = 0;              // the share of it in which the idlest pool thread worked
  double sync_busy = 0;              // the share of it in which a sync was under way
  double store_busy = 0;             // the share of it in which a store elsewhere had requests
  uint64_t connections_refused = 0;  // in it
  uint64_t commands_refused = 0;     // in it
};

// A limit is what bounds the server: sync, flush, merge, disk_full, maxmemory, clients, store, cpu
// or nothing.
struct Limit {
  std::string_view id;
  std::string text;  // a sentence for people
};

// Returns what bounds the server. Where several things do, the one that keeps most from going on
// comes first: a full disk, writes that maxmemory refuses, writers that wait for flushes or merges,
// clients that are refused; then the busier of processor and disk, or store on other machines.
Limit LimitOf(const Load& load);

class LoadSampler {
 public:
  static constexpr std::chrono::seconds kWindow{1};

  // Notes the sample and returns the load up to it.
  Load Look(LoadSample sample) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  LoadSample earlier_ ABSL_GUARDED_BY(mutex_);
  LoadSample later_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
