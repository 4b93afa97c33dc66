// The throttle slows writers down gradually when flushes and merges fall behind, so that they never
// have to stop at once.
//
// Pressure up to kFreePressure costs nothing. Above it, up to 1, each written byte costs more time.
// The throttle adds up the time that writers owe until it is worth a sleep, so that small writes
// are not delayed one by one.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "varve/store.h"

namespace varve {

class Throttle {
 public:
  double pressure() const { return pressure_.load(std::memory_order_relaxed); }
  void set_pressure(double pressure) { pressure_.store(pressure, std::memory_order_relaxed); }

  // Adds the cost of `bytes` to the debt. The caller sleeps for all of it once the writers together
  // owe a millisecond, never longer than kLongestSleep.
  void Pay(uint64_t bytes) {
    const double excess = pressure() - kFreePressure;
    if (excess <= 0) return;
    const auto cost = static_cast<uint64_t>(bytes * std::min(excess / (1 - kFreePressure), 1.0) *
                                            kNanosecondsPerByte);
    const uint64_t owed = owed_ns_.fetch_add(cost, std::memory_order_relaxed) + cost;
    if (owed < kWorthSleeping) return;
    const uint64_t mine = owed_ns_.exchange(0, std::memory_order_relaxed);
    const uint64_t sleeps = std::min(mine, kLongestSleep);
    std::this_thread::sleep_for(std::chrono::nanoseconds(sleeps));
    CountStall(sleeps);
  }

  // Notes that a writer was held up for so long. The sum covers the sleeps of Pay(), too.
  void CountStall(uint64_t nanos) { stall_ns_.fetch_add(nanos, std::memory_order_relaxed); }
  uint64_t stall_nanos() const { return stall_ns_.load(std::memory_order_relaxed); }

 private:
  static constexpr double kNanosecondsPerByte = 20;  // at pressure 1: 50 MB/s
  static constexpr uint64_t kWorthSleeping = 1'000'000;
  static constexpr uint64_t kLongestSleep = 20'000'000;

  std::atomic<double> pressure_{0};
  std::atomic<uint64_t> owed_ns_{0};
  std::atomic<uint64_t> stall_ns_{0};
};

}  // namespace varve
