// What a loop does before it sleeps: the rule by itself.
#include "server/net/idle_policy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace varve {
namespace {

constexpr std::chrono::microseconds kFast{100};
constexpr std::chrono::milliseconds kSlow{2};

struct IdleClient {};

class IdlePolicyTest : public ::testing::Test {
 protected:
  void Serve(IdlePolicy* policy, std::vector<int> round, uint32_t times = 1) {
    std::vector<IdleClient*> clients;
    for (const int client : round) clients.push_back(&clients_[client]);
    for (uint32_t i = 0; i < times; ++i) policy->Served<IdleClient>(clients);
  }
  // Rounds until one is kept; many: none was.
  uint32_t RoundsOff() {
    for (uint32_t rounds = 0; rounds < 1u << 20; ++rounds) {
      if (policy_.KeepsWrites(now_)) return rounds;
    }
    return 1u << 20;
  }
  int TimesItPolls(IdlePolicy* policy, int sleeps) {
    int times = 0;
    for (int i = 0; i < sleeps; ++i) times += policy->Polls() ? 1 : 0;
    return times;
  }

  IdleClient clients_[4];
  IdlePolicy::Time now_ = std::chrono::steady_clock::now();
  IdlePolicy policy_{/*is_only_loop=*/true, /*processors=*/2};
};

// --- Which clients a loop serves -----------------------------------------------------------------

TEST_F(IdlePolicyTest, OneAloneIsOneOnlyAfterSomeRounds) {
  Serve(&policy_, {0}, IdlePolicy::kRecentRounds - 1);
  EXPECT_FALSE(policy_.serves_one());
  Serve(&policy_, {0}, 2);
  EXPECT_TRUE(policy_.serves_one());
  EXPECT_TRUE(policy_.serves_at_most_two());
}

TEST_F(IdlePolicyTest, TheSecondClientEndsOneButNotTwo) {
  Serve(&policy_, {0}, 2 * IdlePolicy::kRecentRounds);
  Serve(&policy_, {1});
  EXPECT_FALSE(policy_.serves_one());
  for (uint32_t i = 0; i < IdlePolicy::kRecentRounds; ++i) {
    Serve(&policy_, {0});
    Serve(&policy_, {1});
  }
  EXPECT_FALSE(policy_.serves_one());
  EXPECT_TRUE(policy_.serves_at_most_two());
  Serve(&policy_, {0, 1}, IdlePolicy::kRecentRounds);
  EXPECT_FALSE(policy_.serves_one());
  EXPECT_TRUE(policy_.serves_at_most_two());
}

TEST_F(IdlePolicyTest, TheThirdClientEndsBoth) {
  Serve(&policy_, {0, 1}, 2 * IdlePolicy::kRecentRounds);
  EXPECT_TRUE(policy_.serves_at_most_two());
  Serve(&policy_, {2});
  EXPECT_FALSE(policy_.serves_at_most_two());
  Serve(&policy_, {0, 2}, 2 * IdlePolicy::kRecentRounds);
  EXPECT_TRUE(policy_.serves_at_most_two());
  Serve(&policy_, {0, 1, 2});
  EXPECT_FALSE(policy_.serves_at_most_two());
}

// --- Syncing -------------------------------------------------------------------------------------

TEST_F(IdlePolicyTest, KeepsWritesForAWhile) {
  EXPECT_TRUE(policy_.KeepsWrites(now_));
  EXPECT_TRUE(policy_.KeepsWrites(now_ + IdlePolicy::kLongestKept / 2));
  EXPECT_FALSE(policy_.KeepsWrites(now_ + IdlePolicy::kLongestKept));
  policy_.Pushed();
  EXPECT_TRUE(policy_.KeepsWrites(now_ + IdlePolicy::kLongestKept)) << "those that came since";
}

TEST_F(IdlePolicyTest, OneOfSeveralLoopsKeepsWritesForALoneClient) {
  IdlePolicy one_of_two(/*is_only_loop=*/false, 2);
  EXPECT_FALSE(one_of_two.KeepsWrites(now_));
  Serve(&one_of_two, {0}, 2 * IdlePolicy::kRecentRounds);
  EXPECT_TRUE(one_of_two.KeepsWrites(now_));
}

TEST_F(IdlePolicyTest, ASlowDiskIsTriedLessAndLess) {
  policy_.Synced(kFast);
  EXPECT_EQ(RoundsOff(), 0u);
  policy_.Synced(kSlow);
  EXPECT_EQ(RoundsOff(), IdlePolicy::kFewestRoundsOff);
  policy_.Synced(kSlow);
  EXPECT_EQ(RoundsOff(), 2 * IdlePolicy::kFewestRoundsOff);
  for (int i = 0; i < 30; ++i) policy_.Synced(kSlow);
  EXPECT_EQ(RoundsOff(), IdlePolicy::kMostRoundsOff);
  for (int i = 0; i < 30; ++i) policy_.Synced(kFast);
  EXPECT_EQ(RoundsOff(), 0u);
  policy_.Synced(kSlow);
  EXPECT_EQ(RoundsOff(), IdlePolicy::kFewestRoundsOff) << "forgiven";
}

// --- Polling -------------------------------------------------------------------------------------

TEST_F(IdlePolicyTest, PollsNowAndThenUntilItPays) {
  EXPECT_EQ(TimesItPolls(&policy_, 10 * IdlePolicy::kProbeEvery), 10);
  policy_.Polled(true);
  EXPECT_EQ(TimesItPolls(&policy_, 10), 10);
}

TEST_F(IdlePolicyTest, StopsPollingWhenItPaysNoMore) {
  for (int i = 0; i < 1000; ++i) policy_.Polled(true);
  int misses = 0;
  for (; policy_.Polls(); ++misses) policy_.Polled(false);
  EXPECT_EQ(misses, IdlePolicy::kMostCredit / IdlePolicy::kCostOfMiss);
}

TEST_F(IdlePolicyTest, MissesOutweighFinds) {
  for (int i = 0; i < 100; ++i) policy_.Polled(i % 2 == 0);
  EXPECT_FALSE(policy_.Polls());
}

TEST_F(IdlePolicyTest, NeverPollsOnOneProcessor) {
  IdlePolicy policy(true, 1);
  policy.Polled(true);
  EXPECT_EQ(TimesItPolls(&policy, 10 * IdlePolicy::kProbeEvery), 0);
}

TEST_F(IdlePolicyTest, PollsUntilItFindsOrTheTimeIsOver) {
  int looks = 0;
  EXPECT_TRUE(policy_.Poll([&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(policy_.Poll([] { return false; }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, IdlePolicy::kLongestPoll);
}

}  // namespace
}  // namespace varve
