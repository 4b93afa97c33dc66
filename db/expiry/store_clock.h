// The store clock is the clock by which a store lets keys expire, in milliseconds since the epoch.
//
// The rule: a key that a reader has seen expired stays expired, whatever happens to the machine's
// clock, also across a restart. The machine's clock may be set back; then a key that was missing
// would be there again. So a reader that finds a key expired leaves a mark in the log, "the clock
// has been at this instant", and its result leaves when the mark is as durable as the store's mode
// promises. The manifest holds the newest mark, too, so that the log's files can be removed. The
// store clock never shows less than its newest mark. When the machine's clock falls behind it, the
// store clock goes on from there at the pace of the monotonic clock, so that a key which is to
// expire in ten seconds does, until the machine's clock has caught up. A store in which nothing
// expires never writes a mark.
//
// If the machine's clock was far ahead when a reader left a mark, the store's clock stays ahead,
// and keys with an absolute expiry expire early. That is the price of the rule; docs/durability.md
// says how to see it.
//
// Thread-safety: all functions may be called on any thread. A reading takes tens of nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "util/os/clock.h"

namespace varve {

class StoreClock {
 public:
  // Requires: `clock` outlives the store clock.
  explicit StoreClock(const Clock& clock) : clock_(clock) {}

  // Returns the store's time.
  uint64_t NowMillis() const {
    const uint64_t wall = clock_.WallMillis();
    if (wall >= mark_.load(std::memory_order_acquire) && !is_ahead_.load(std::memory_order_relaxed))
        [[likely]]
      return wall;
    return NowFromMark(wall);
  }

  // Has the clock show `instant_ms` or more from now on.
  void Mark(uint64_t instant_ms);
  uint64_t mark() const { return mark_.load(std::memory_order_acquire); }

 private:
  int64_t MonotonicMillis() const {
    return static_cast<int64_t>(clock_.MonotonicNanos() / 1'000'000);
  }
  uint64_t NowFromMark(uint64_t wall) const;

  const Clock& clock_;
  std::atomic<uint64_t> mark_{0};
  // The milliseconds by which the store's clock is ahead of the monotonic clock, because of the
  // marks. The thread that sets a mark sets this first.
  std::atomic<int64_t> over_monotonic_{std::numeric_limits<int64_t>::min()};
  mutable std::atomic<bool> is_ahead_{false};  // of the machine's clock
};

}  // namespace varve
