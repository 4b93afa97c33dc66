#include "server/statistics/command_statistics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "server/statistics/rate_meter.h"

namespace varve {
namespace {

TEST(LatencyBucketsTest, EachDurationLiesInItsBucket) {
  for (uint64_t nanos :
       {0ul, 1ul, 1023ul, 1024ul, 1151ul, 1152ul, 999'999ul, 1'000'000ul, 68'000'000'000ul}) {
    const size_t bucket = LatencyBuckets::IndexOf(nanos);
    ASSERT_LT(bucket, LatencyBuckets::kCount);
    EXPECT_LT(nanos, LatencyBuckets::EndOf(bucket));
    if (bucket == 0) continue;
    const uint64_t begin = LatencyBuckets::EndOf(bucket - 1);
    EXPECT_GE(nanos, begin);
    EXPECT_LE(LatencyBuckets::EndOf(bucket) - begin, begin / 8);
  }
  EXPECT_EQ(LatencyBuckets::IndexOf(UINT64_MAX), LatencyBuckets::kCount - 1);
}

TEST(CommandStatisticsTest, AddsUpTheThreadsAndForgetsAtAReset) {
  CommandStatistics statistics(3);
  const auto work = [&] {
    for (int i = 0; i < 1000; ++i) {
      statistics.Executed(1, 2, 5000);
      statistics.Failed(1);
      statistics.Rejected(2);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  std::vector<CommandFigures> figures = statistics.Read();
  EXPECT_EQ(figures[0].calls, 0u);
  EXPECT_EQ(figures[1].calls, 8000u);
  EXPECT_EQ(figures[1].nanos, 8000u * 5000);
  EXPECT_EQ(figures[1].failed, 4000u);
  EXPECT_EQ(figures[1].rejected, 0u);
  EXPECT_EQ(figures[2].rejected, 4000u);
  EXPECT_EQ(figures[1].histogram[LatencyBuckets::IndexOf(5000)], 8000u);

  statistics.Reset();
  EXPECT_EQ(statistics.Read()[1].calls, 0u);
  statistics.Executed(1, 1, 100);
  figures = statistics.Read();
  EXPECT_EQ(figures[1].calls, 1u);
  EXPECT_EQ(figures[1].histogram[0], 1u);
  EXPECT_EQ(figures[2].rejected, 0u);
}

TEST(CommandStatisticsTest, AThreadMayServeSeveralObjects) {
  for (int i = 0; i < 3; ++i) {
    CommandStatistics first(1), second(1);
    first.Executed(0, 1, 1);
    second.Executed(0, 2, 1);
    first.Executed(0, 4, 1);
    EXPECT_EQ(first.Read()[0].calls, 5u);
    EXPECT_EQ(second.Read()[0].calls, 2u);
  }
}

TEST(CommandStatisticsTest, PercentilesAreTheEndOfTheirBucket) {
  CommandStatistics statistics(1);
  EXPECT_EQ(statistics.Read()[0].Percentile(0.5), 0u);
  statistics.Executed(0, 98, 2000);
  statistics.Executed(0, 2, 1'000'000);
  const CommandFigures figures = statistics.Read()[0];
  EXPECT_EQ(figures.Percentile(0.5), LatencyBuckets::EndOf(LatencyBuckets::IndexOf(2000)));
  EXPECT_EQ(figures.Percentile(0.98), LatencyBuckets::EndOf(LatencyBuckets::IndexOf(2000)));
  EXPECT_EQ(figures.Percentile(0.99), LatencyBuckets::EndOf(LatencyBuckets::IndexOf(1'000'000)));
}

TEST(RateMeterTest, KeepsTheRateOfTheLastSecondOrMore) {
  RateMeter meter;
  const RateMeter::Clock::time_point begin = RateMeter::Clock::now();
  EXPECT_EQ(meter.Rate(500, begin + std::chrono::milliseconds(500)), 0);
  EXPECT_NEAR(meter.Rate(2000, begin + std::chrono::seconds(2)), 1000, 10);
  EXPECT_NEAR(meter.Rate(9000, begin + std::chrono::milliseconds(2500)), 1000, 10);
  EXPECT_NEAR(meter.Rate(2300, begin + std::chrono::seconds(5)), 100, 1);
}

}  // namespace
}  // namespace varve
