// A rate limit spreads bytes evenly over time: each piece is due when those before it have had
// their time. What was not used is not made up for, so that no burst follows a pause.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "util/os/clock.h"

namespace varve {

class RateLimit {
 public:
  // `bytes_per_second` 0: no limit. Requires: the clock outlives the object.
  RateLimit(uint64_t bytes_per_second, const Clock& clock)
      : bytes_per_second_(bytes_per_second), clock_(clock), due_(clock.MonotonicNanos()) {}

  // Returns how large a piece may be so that the rate is kept also within a fraction of a second:
  // `most`, or less.
  uint64_t PieceSize(uint64_t most) const {
    constexpr uint64_t kPiecesASecond = 16;
    constexpr uint64_t kLeast = uint64_t{4} << 10;
    if (bytes_per_second_ == 0) return most;
    return std::clamp(bytes_per_second_ / kPiecesASecond, std::min(kLeast, most), most);
  }

  // Returns how long the next piece has to wait; zero: it is due.
  absl::Duration Wait() const {
    const uint64_t now = clock_.MonotonicNanos();
    if (bytes_per_second_ == 0 || due_ <= now) return absl::ZeroDuration();
    return absl::Nanoseconds(due_ - now);
  }

  // Counts a piece that goes now.
  void Spend(uint64_t bytes) {
    if (bytes_per_second_ == 0) return;
    due_ = std::max(due_, clock_.MonotonicNanos()) + NanosOf(bytes);
  }

 private:
  uint64_t NanosOf(uint64_t bytes) const {
    constexpr double kNanosASecond = 1e9;
    return static_cast<uint64_t>(static_cast<double>(bytes) * kNanosASecond /
                                 static_cast<double>(bytes_per_second_));
  }

  const uint64_t bytes_per_second_;
  const Clock& clock_;
  uint64_t due_;  // nanoseconds of the clock
};

}  // namespace varve
