#include "server/statistics/loop_times.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace varve {
namespace {

using std::chrono::seconds;

TEST(LoopTimesTest, ALoopThatWorksWithoutEndIsSilent) {
  LoopTimes times;
  const LoopTimes::Time now = CoarseNow();
  EXPECT_EQ(times.SilentFor(now).count(), 0) << "it has not begun";
  times.CameRound(now);
  EXPECT_EQ(times.SilentFor(now + seconds(20)), seconds(20));
  times.RestBegins(now + seconds(20));
  EXPECT_EQ(times.SilentFor(now + seconds(40)).count(), 0) << "it has nothing to do";
  EXPECT_EQ(times.IdleNanos(now + seconds(40)), 20'000'000'000);
  times.RestEnds(now + seconds(40));
  EXPECT_EQ(times.IdleNanos(now + seconds(50)), 20'000'000'000);
}

TEST(LoopTimesTest, ALoopThatWaitsForTheDiskIsNotSilent) {
  LoopTimes times;
  DiskWaits::NoteIn(&times.disk());
  const LoopTimes::Time now = CoarseNow();
  times.CameRound(now - seconds(20));
  EXPECT_EQ(times.SilentFor(now), seconds(20));
  {
    const DiskWait wait;
    const DiskWait within;  // says nothing new
    EXPECT_EQ(times.SilentFor(now + seconds(30)).count(), 0);
    EXPECT_GE(times.disk().PresentNanos(now + seconds(30)), 29'000'000'000);
    EXPECT_EQ(times.IdleNanos(now + seconds(30)), times.disk().PresentNanos(now + seconds(30)));
  }
  DiskWaits::NoteIn(nullptr);
  EXPECT_EQ(times.disk().PresentNanos(now + seconds(30)), 0);
  EXPECT_LE(times.SilentFor(now + seconds(5)), seconds(5)) << "since the wait has ended";
  const DiskWait of_nobody;
  EXPECT_EQ(times.disk().PresentNanos(now + seconds(30)), 0);
}

TEST(LoopTimesTest, AWaitWithinARestCountsOnce) {
  LoopTimes times;
  DiskWaits::NoteIn(&times.disk());
  const LoopTimes::Time begin = CoarseNow();
  times.RestBegins(begin);
  std::optional<DiskWait> wait(std::in_place);
  EXPECT_EQ(times.IdleNanos(begin + seconds(10)), 10'000'000'000);
  wait.reset();
  EXPECT_EQ(times.IdleNanos(begin + seconds(10)), 10'000'000'000);
  times.RestEnds(begin + seconds(10));
  EXPECT_EQ(times.IdleNanos(begin + seconds(60)), 10'000'000'000);
  DiskWaits::NoteIn(nullptr);
}

}  // namespace
}  // namespace varve
