#include "db/commit/throttle.h"

#include <gtest/gtest.h>

#include <chrono>

#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

std::chrono::nanoseconds TimeToPay(Throttle* throttle, uint64_t bytes, int times) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) throttle->Pay(bytes);
  return std::chrono::steady_clock::now() - begin;
}

// Sleeps never end early, so a lower bound is not a matter of how busy the machine is.
TEST(ThrottleTest, WritersPayOnlyUnderPressureAndMoreUnderMore) {
  Throttle throttle;
  throttle.set_pressure(1.0);
  EXPECT_GE(TimeToPay(&throttle, 10000, 100), std::chrono::milliseconds(18)) << "20 ns a byte";
  throttle.set_pressure(0.75);
  EXPECT_GE(TimeToPay(&throttle, 10000, 100), std::chrono::milliseconds(8)) << "half of it";
}

TEST(ThrottleTest, NothingIsOwedWithoutPressure) {
  Throttle throttle;
  EXPECT_TRUE(testing::Eventually([&] {
    throttle.set_pressure(kFreePressure);
    throttle.Pay(uint64_t{1} << 40);
    throttle.set_pressure(0.500001);
    // Had the terabyte been written down, this would sleep for it, each time.
    return TimeToPay(&throttle, 1, 1) < std::chrono::milliseconds(20);
  }));
}

}  // namespace
}  // namespace varve
