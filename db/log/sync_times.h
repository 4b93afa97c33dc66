// The times of the log's syncs: how long each took, how long any was under way, and since when one
// is under way now.
//
// Thread-safety: Began() and Ended() are called under one lock (GroupCommit's); all threads may
// read.
// Invariants: as long as a sync is under way, mark_ is the time of the latest end, or of the first
// beginning if none has ended since; else it is 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "util/base/assert.h"
#include "util/base/duration_histogram.h"
#include "util/os/steady_condition.h"

namespace varve {

class SyncTimes {
 public:
  // `running`: how many syncs are under way now, this one among them.
  void Began(SteadyTime now, int running) {
    VARVE_ASSERT(running > 0);
    if (running == 1) mark_.store(Nanos(now), std::memory_order_relaxed);
  }
  // `running`: how many are still under way.
  void Ended(SteadyTime began, SteadyTime now, int running) {
    VARVE_ASSERT(running >= 0);
    times_.Record(static_cast<uint64_t>(std::max<int64_t>(0, Nanos(now) - Nanos(began))));
    const int64_t mark = mark_.load(std::memory_order_relaxed);
    VARVE_ASSERT(mark != 0);
    busy_.fetch_add(static_cast<uint64_t>(std::max<int64_t>(0, Nanos(now) - mark)),
                    std::memory_order_relaxed);
    mark_.store(running > 0 ? Nanos(now) : 0, std::memory_order_relaxed);
  }

  DurationCounts times() const { return times_.Read(); }
  // Returns for how long no sync has ended though one is under way; 0: none is.
  uint64_t WaitNanos(SteadyTime now) const {
    const int64_t mark = mark_.load(std::memory_order_relaxed);
    return mark == 0 ? 0 : static_cast<uint64_t>(std::max<int64_t>(0, Nanos(now) - mark));
  }
  // Returns for how long a sync was under way, altogether.
  uint64_t BusyNanos(SteadyTime now) const {
    return busy_.load(std::memory_order_relaxed) + WaitNanos(now);
  }

 private:
  static int64_t Nanos(SteadyTime time) { return time.time_since_epoch().count(); }

  DurationHistogram times_;
  std::atomic<uint64_t> busy_{0};
  std::atomic<int64_t> mark_{0};
};

}  // namespace varve
