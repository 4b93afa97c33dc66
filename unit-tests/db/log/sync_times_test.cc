// The times of syncs that overlap.
#include "db/log/sync_times.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

SteadyTime At(int millis) { return SteadyTime() + std::chrono::milliseconds(1000 + millis); }

constexpr uint64_t kMillisecond = 1'000'000;

TEST(SyncTimesTest, OverlappingSyncsAreBusyOnce) {
  SyncTimes times;
  EXPECT_EQ(times.WaitNanos(At(0)), 0u);
  times.Began(At(0), 1);
  EXPECT_EQ(times.WaitNanos(At(5)), 5 * kMillisecond);
  times.Began(At(6), 2);
  times.Ended(At(0), At(10), 1);
  EXPECT_EQ(times.WaitNanos(At(12)), 2 * kMillisecond) << "since a sync ended";
  EXPECT_EQ(times.BusyNanos(At(12)), 12 * kMillisecond);
  times.Ended(At(6), At(20), 0);
  EXPECT_EQ(times.WaitNanos(At(30)), 0u);
  EXPECT_EQ(times.BusyNanos(At(30)), 20 * kMillisecond);
  const DurationCounts counts = times.times();
  EXPECT_EQ(counts.count(), 2u);
  EXPECT_EQ(counts.nanos, 24 * kMillisecond);
  EXPECT_EQ(counts.buckets[DurationCounts::BucketOf(10 * kMillisecond)], 1u);
  EXPECT_EQ(counts.buckets[DurationCounts::BucketOf(14 * kMillisecond)], 1u);
}

}  // namespace
}  // namespace varve
