#include "server/clients/output_gauge.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

using std::chrono::seconds;

constexpr OutputGauge::Time kGaugeStart{seconds(1000)};
constexpr OutputLimits kLimits{.hard = 1000, .soft = 100, .soft_time = seconds(10)};

TEST(OutputGaugeTest, TheHardLimitHoldsAtOnce) {
  OutputGauge gauge;
  EXPECT_FALSE(gauge.Over(1000, kLimits, kGaugeStart));
  EXPECT_TRUE(gauge.Over(1001, kLimits, kGaugeStart));
  EXPECT_FALSE(OutputGauge().Over(1u << 30, OutputLimits{}, kGaugeStart)) << "there is no limit";
}

TEST(OutputGaugeTest, TheSoftLimitHoldsAfterItsTime) {
  OutputGauge gauge;
  EXPECT_FALSE(gauge.Over(101, kLimits, kGaugeStart));
  EXPECT_FALSE(gauge.Over(500, kLimits, kGaugeStart + seconds(10)));
  EXPECT_TRUE(gauge.Over(101, kLimits, kGaugeStart + seconds(11)));
}

TEST(OutputGaugeTest, TheTimeBeginsAnewOnceTheClientCaughtUp) {
  OutputGauge gauge;
  EXPECT_FALSE(gauge.Over(101, kLimits, kGaugeStart));
  EXPECT_FALSE(gauge.Over(100, kLimits, kGaugeStart + seconds(11)));
  EXPECT_FALSE(gauge.Over(101, kLimits, kGaugeStart + seconds(12)));
  EXPECT_FALSE(gauge.Over(101, kLimits, kGaugeStart + seconds(22)));
  EXPECT_TRUE(gauge.Over(101, kLimits, kGaugeStart + seconds(23)));
}

}  // namespace
}  // namespace varve
