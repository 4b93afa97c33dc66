// The loop times say of one I/O loop for how long it had nothing to do, and when it last came
// round.
//
// Thread-safety: the loop's thread writes; all threads may read. The clock is the coarse one, whose
// ticks take 4 ms: short rests count now and then, and on average by their length.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace varve {

class LoopTimes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void CameRound(Time now) { came_round_.store(Nanos(now), std::memory_order_relaxed); }
  void RestBegins(Time now) { resting_since_.store(Nanos(now), std::memory_order_relaxed); }
  void RestEnds(Time now) {
    const int64_t rested = Nanos(now) - resting_since_.load(std::memory_order_relaxed);
    rest_.store(rest_.load(std::memory_order_relaxed) + std::max<int64_t>(rested, 0),
                std::memory_order_relaxed);
    resting_since_.store(0, std::memory_order_relaxed);
  }

  void Syncs(bool now) { syncing_.store(now, std::memory_order_relaxed); }
  // Returns whether the loop waits for the disk.
  bool syncing() const { return syncing_.load(std::memory_order_relaxed); }
  // Returns for how long the loop has rested or synced, altogether.
  int64_t RestNanos(Time now) const {
    const int64_t since = resting_since_.load(std::memory_order_relaxed);
    const int64_t present = since == 0 ? 0 : std::max<int64_t>(Nanos(now) - since, 0);
    return rest_.load(std::memory_order_relaxed) + present;
  }
  // Returns for how long the loop has not come round, which it does each second at rest.
  std::chrono::nanoseconds SilentFor(Time now) const {
    const int64_t last = came_round_.load(std::memory_order_relaxed);
    if (last == 0 || resting_since_.load(std::memory_order_relaxed) != 0)
      return std::chrono::nanoseconds(0);
    return std::chrono::nanoseconds(std::max<int64_t>(Nanos(now) - last, 0));
  }

 private:
  static int64_t Nanos(Time time) { return time.time_since_epoch().count(); }

  std::atomic<bool> syncing_{false};
  std::atomic<int64_t> rest_{0};
  std::atomic<int64_t> resting_since_{0};  // 0: the loop works
  std::atomic<int64_t> came_round_{0};     // 0: the loop has not begun
};

}  // namespace varve
