#include "server/clients/output_gauge.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

using std::chrono::seconds;

constexpr OutputGauge::Time kStart{seconds(1000)};
constexpr OutputLimits kLimits{.hard = 1000, .soft = 100, .soft_time = seconds(10)};

TEST(OutputGaugeTest, TheHardLimitHoldsAtOnce) {
  OutputGauge gauge;
  EXPECT_FALSE(gauge.Over(1000, kLimits, kStart));
  EXPECT_TRUE(gauge.Over(1001, kLimits, kStart));
  EXPECT_FALSE(OutputGauge().Over(1u << 30, OutputLimits{}, kStart)) << "there is no limit";
}

TEST(OutputGaugeTest, TheSoftLimitHoldsAfterItsTime) {
  OutputGauge gauge;
  EXPECT_FALSE(gauge.Over(101, kLimits, kStart));
  EXPECT_FALSE(gauge.Over(500, kLimits, kStart + seconds(10)));
  EXPECT_TRUE(gauge.Over(101, kLimits, kStart + seconds(11)));
}

TEST(OutputGaugeTest, TheTimeBeginsAnewOnceTheClientCaughtUp) {
  OutputGauge gauge;
  EXPECT_FALSE(gauge.Over(101, kLimits, kStart));
  EXPECT_FALSE(gauge.Over(100, kLimits, kStart + seconds(11)));
  EXPECT_FALSE(gauge.Over(101, kLimits, kStart + seconds(12)));
  EXPECT_FALSE(gauge.Over(101, kLimits, kStart + seconds(22)));
  EXPECT_TRUE(gauge.Over(101, kLimits, kStart + seconds(23)));
}

}  // namespace
}  // namespace varve
