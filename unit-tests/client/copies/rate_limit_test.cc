#include "client/copies/rate_limit.h"

#include <gtest/gtest.h>

#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

TEST(RateLimitTest, WithoutALimitNothingWaits) {
  const testing::ManualClock clock;
  RateLimit limit(0, clock);
  EXPECT_EQ(limit.PieceSize(kMebibyte), kMebibyte);
  for (int i = 0; i < 100; ++i) limit.Spend(kMebibyte);
  EXPECT_EQ(limit.Wait(), absl::ZeroDuration());
}

TEST(RateLimitTest, APieceIsDueWhenThoseBeforeHaveHadTheirTime) {
  testing::ManualClock clock;
  RateLimit limit(4 * kMebibyte, clock);
  EXPECT_EQ(limit.Wait(), absl::ZeroDuration());
  limit.Spend(kMebibyte);
  EXPECT_EQ(limit.Wait(), absl::Milliseconds(250));
  clock.Advance(100);
  EXPECT_EQ(limit.Wait(), absl::Milliseconds(150));
  clock.Advance(150);
  EXPECT_EQ(limit.Wait(), absl::ZeroDuration());
}

TEST(RateLimitTest, NoBurstFollowsAPause) {
  testing::ManualClock clock;
  RateLimit limit(4 * kMebibyte, clock);
  limit.Spend(kMebibyte);
  clock.Advance(60'000);
  EXPECT_EQ(limit.Wait(), absl::ZeroDuration());
  limit.Spend(kMebibyte);
  EXPECT_EQ(limit.Wait(), absl::Milliseconds(250));
}

TEST(RateLimitTest, PiecesAreSmallWhereTheRateIs) {
  const testing::ManualClock clock;
  EXPECT_EQ(RateLimit(100 * kMebibyte, clock).PieceSize(kMebibyte), kMebibyte);
  EXPECT_EQ(RateLimit(kMebibyte, clock).PieceSize(kMebibyte), kMebibyte / 16);
  EXPECT_EQ(RateLimit(1, clock).PieceSize(kMebibyte), 4096u);
  EXPECT_EQ(RateLimit(1, clock).PieceSize(1000), 1000u);
}

}  // namespace
}  // namespace varve
