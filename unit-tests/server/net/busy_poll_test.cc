#include "server/net/busy_poll.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

int TimesWorthIt(BusyPoll* poll, int sleeps) {
  int times = 0;
  for (int i = 0; i < sleeps; ++i) times += poll->IsWorthIt() ? 1 : 0;
  return times;
}

TEST(BusyPollTest, IsTriedNowAndThenUntilItPays) {
  BusyPoll poll(2);
  EXPECT_EQ(TimesWorthIt(&poll, 10 * BusyPoll::kProbeEvery), 10);
  poll.Polled(true);
  EXPECT_EQ(TimesWorthIt(&poll, 10), 10);
}

TEST(BusyPollTest, EndsWhenItPaysNoMore) {
  BusyPoll poll(2);
  for (int i = 0; i < 1000; ++i) poll.Polled(true);
  int misses = 0;
  for (; poll.IsWorthIt(); ++misses) poll.Polled(false);
  EXPECT_EQ(misses, BusyPoll::kMostCredit / BusyPoll::kCostOfMiss);
}

TEST(BusyPollTest, MissesOutweighFinds) {
  BusyPoll poll(2);
  for (int i = 0; i < 100; ++i) poll.Polled(i % 2 == 0);
  EXPECT_FALSE(poll.IsWorthIt());
}

TEST(BusyPollTest, NeverOnOneProcessor) {
  BusyPoll poll(1);
  poll.Polled(true);
  EXPECT_EQ(TimesWorthIt(&poll, 10 * BusyPoll::kProbeEvery), 0);
}

TEST(BusyPollTest, LooksUntilItFindsOrTheTimeIsOver) {
  BusyPoll poll(2);
  int looks = 0;
  EXPECT_TRUE(poll.Poll([&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(poll.Poll([] { return false; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, BusyPoll::kLimit);
}

}  // namespace
}  // namespace varve
