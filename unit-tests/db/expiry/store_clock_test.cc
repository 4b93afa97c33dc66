#include "db/expiry/store_clock.h"

#include <gtest/gtest.h>

#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::ManualClock;

constexpr uint64_t kStart = ManualClock::kStart;
constexpr uint64_t kHour = 3'600'000;

TEST(StoreClockTest, IsTheMachinesAsLongAsThatIsNotBehindAMark) {
  ManualClock machine;
  StoreClock clock(machine);
  EXPECT_EQ(clock.NowMillis(), kStart);
  machine.SetWall(kStart - kHour);
  EXPECT_EQ(clock.NowMillis(), kStart - kHour) << "nobody has seen anything";
  clock.Mark(kStart - kHour);
  machine.Advance(10);
  EXPECT_EQ(clock.NowMillis(), kStart - kHour + 10);
  machine.SetWall(kStart + kHour);
  EXPECT_EQ(clock.NowMillis(), kStart + kHour);
  EXPECT_EQ(clock.mark(), kStart - kHour);
}

TEST(StoreClockTest, GoesOnFromItsMarkAtThePaceOfTime) {
  ManualClock machine;
  StoreClock clock(machine);
  clock.Mark(kStart);
  machine.SetWall(kStart - kHour);
  for (uint64_t passed = 0; passed < 3 * kHour; passed += kHour / 4) {
    ASSERT_EQ(clock.NowMillis(), kStart + passed)
        << "also when the machine's clock passes the mark";
    machine.Advance(kHour / 4);
  }
  clock.Mark(kStart + kHour);
  EXPECT_EQ(clock.NowMillis(), kStart + 3 * kHour) << "an older mark changes nothing";
  machine.SetWall(kStart + 3 * kHour - 1);
  EXPECT_EQ(clock.NowMillis(), kStart + 3 * kHour);
  machine.SetWall(kStart + 4 * kHour);
  EXPECT_EQ(clock.NowMillis(), kStart + 4 * kHour) << "it has caught up";
  machine.SetWall(kStart + 3 * kHour);
  EXPECT_EQ(clock.NowMillis(), kStart + 3 * kHour)
      << "and leads again, as far as nobody has seen more";
}

TEST(StoreClockTest, NeverShowsLessThanItsMark) {
  ManualClock machine;
  StoreClock clock(machine);
  clock.Mark(kStart + kHour);
  EXPECT_EQ(clock.NowMillis(), kStart + kHour);
  machine.Advance(10);
  EXPECT_EQ(clock.NowMillis(), kStart + kHour + 10);
  clock.Mark(kStart + 2 * kHour);
  EXPECT_EQ(clock.NowMillis(), kStart + 2 * kHour);
}

}  // namespace
}  // namespace varve
