#include "util/os/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace varve {
namespace {

TEST(ClockTest, WallTimeIsTheCalendarsInMilliseconds) {
  const auto calendar = [] {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  };
  const uint64_t before = calendar();
  const uint64_t now = RealClock().WallMillis();
  EXPECT_LE(before, now);
  EXPECT_LE(now, calendar());
}

TEST(ClockTest, MonotonicTimeMeasuresSpansInNanoseconds) {
  const uint64_t start = RealClock().MonotonicNanos();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  const uint64_t span = RealClock().MonotonicNanos() - start;
  EXPECT_GE(span, 3'000'000u);
  EXPECT_LT(span, 60'000'000'000u);
}

TEST(ClockTest, MonotonicTimeNeverGoesBack) {
  uint64_t last = RealClock().MonotonicNanos();
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t now = RealClock().MonotonicNanos();
    ASSERT_LE(last, now);
    last = now;
  }
}

}  // namespace
}  // namespace varve
