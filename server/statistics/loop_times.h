// The loop times say of one I/O loop for how long it had nothing to do or waited for the disk, and
// when it last came round.
//
// Thread-safety: the loop's thread writes; all threads may read. The clock is the coarse one, whose
// ticks take 4 ms: short rests count now and then, and on average by their length.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "util/os/disk_wait.h"

namespace varve {

class LoopTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void CameRound(Time now) { came_round_.store(Nanos(now), std::memory_order_relaxed); }
  void RestBegins(Time now) {
    waited_before_.store(disk_.TotalNanos(now), std::memory_order_relaxed);
    resting_since_.store(Nanos(now), std::memory_order_relaxed);
  }
  void RestEnds(Time now) {
    rest_.store(rest_.load(std::memory_order_relaxed) + PresentRest(now),
                std::memory_order_relaxed);
    resting_since_.store(0, std::memory_order_relaxed);
  }

  // The waits for the disk of the loop's thread, which notes them here.
  DiskWaits& disk() { return disk_; }
  const DiskWaits& disk() const { return disk_; }
  // Returns for how long the loop has rested or waited for the disk, altogether.
  int64_t IdleNanos(Time now) const {
    return rest_.load(std::memory_order_relaxed) + PresentRest(now) + disk_.TotalNanos(now);
  }
  // Returns for how long the loop has worked without coming round, which it does each second at
  // rest, and without a wait for the disk.
  std::chrono::nanoseconds SilentFor(Time now) const {
    const int64_t last = came_round_.load(std::memory_order_relaxed);
    if (last == 0 || resting_since_.load(std::memory_order_relaxed) != 0)
      return std::chrono::nanoseconds(0);
    const int64_t seen = std::max(last, disk_.LastNanos(now));
    return std::chrono::nanoseconds(std::max<int64_t>(Nanos(now) - seen, 0));
  }

 private:
  static int64_t Nanos(Time time) { return time.time_since_epoch().count(); }

  // Returns for how long the loop has rested since it last began to, without the syncs in between.
  int64_t PresentRest(Time now) const {
    const int64_t since = resting_since_.load(std::memory_order_relaxed);
    if (since == 0) return 0;
    const int64_t waited = disk_.TotalNanos(now) - waited_before_.load(std::memory_order_relaxed);
    return std::max<int64_t>(Nanos(now) - since - std::max<int64_t>(waited, 0), 0);
  }

  std::atomic<int64_t> rest_{0};           // without waits for the disk
  std::atomic<int64_t> resting_since_{0};  // 0: the loop works
  std::atomic<int64_t> waited_before_{0};  // for the disk, when the rest began
  std::atomic<int64_t> came_round_{0};     // 0: the loop has not begun
  DiskWaits disk_;
};

}  // namespace varve
