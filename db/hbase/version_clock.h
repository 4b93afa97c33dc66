// The version clock gives the versions of this process's writes. A version is a reading of the
// machine's clock in milliseconds, times 2^20, unless something higher is known: the version that
// the row holds, the floor of all versions, or the last version that this clock gave or was shown.
// So the versions of one key ascend whatever the clocks of the servers do, and no clock gives a
// version twice.
//
// The floor is at least as high as every version of a row that was removed for good, so that a key
// that is written again gets a higher version than it ever had.
//
// Thread-safety: All functions are thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "util/os/clock.h"
#include "varve/types.h"

namespace varve {

class VersionClock {
 public:
  static constexpr int kBitsBelowMillis = 20;
  // The version that the clock of a machine makes of an instant.
  static constexpr SequenceNumber At(uint64_t wall_ms) { return wall_ms << kBitsBelowMillis; }
  static constexpr uint64_t MillisOf(SequenceNumber version) { return version >> kBitsBelowMillis; }

  // Requires: `clock` outlives this object.
  explicit VersionClock(const Clock* clock) : clock_(clock) {}

  // Returns a version above `above`, above the floor and above every version given or noted before.
  SequenceNumber Next(SequenceNumber above) {
    const SequenceNumber least = std::max({At(clock_->WallMillis()), above + 1, floor() + 1});
    SequenceNumber last = last_.load(std::memory_order_relaxed);
    SequenceNumber next;
    do {
      next = std::max(least, last + 1);
    } while (!last_.compare_exchange_weak(last, next, std::memory_order_relaxed));
    return next;
  }

  // Every version from now on is above `floor`. A lower floor than the one before changes nothing.
  void RaiseFloor(SequenceNumber floor) {
    SequenceNumber known = floor_.load(std::memory_order_relaxed);
    while (known < floor && !floor_.compare_exchange_weak(known, floor)) {
    }
  }
  SequenceNumber floor() const { return floor_.load(); }

  // Returns the machine's clock in milliseconds; it never goes back.
  uint64_t NowMillis() const {
    const uint64_t now = clock_->WallMillis();
    uint64_t shown = shown_ms_.load(std::memory_order_relaxed);
    while (shown < now && !shown_ms_.compare_exchange_weak(shown, now)) {
    }
    return std::max(shown, now);
  }

 private:
  const Clock* const clock_;
  std::atomic<SequenceNumber> last_{kNoSequence};
  std::atomic<SequenceNumber> floor_{kNoSequence};
  mutable std::atomic<uint64_t> shown_ms_{0};
};

}  // namespace varve
