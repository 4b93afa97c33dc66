// A clock that stands still until it is set.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/os/clock.h"

namespace varve::testing {

class ManualClock final : public Clock {
 public:
  static constexpr uint64_t kStart = 1'700'000'000'000;

  uint64_t WallMillis() const override { return wall_.load(); }
  uint64_t MonotonicNanos() const override { return monotonic_.load(); }

  // Time goes by.
  void Advance(uint64_t millis) {
    monotonic_ += millis * 1'000'000;
    wall_ += millis;
  }
  // Somebody sets the wall clock.
  void SetWall(uint64_t millis) { wall_ = millis; }

 private:
  std::atomic<uint64_t> wall_{kStart};
  std::atomic<uint64_t> monotonic_{1};
};

}  // namespace varve::testing
