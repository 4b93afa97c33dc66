#include "util/os/steady_condition.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace varve {
namespace {

TEST(SteadyConditionTest, AWaitEndsWhenItsTimeIsOver) {
  absl::Mutex mutex;
  SteadyCondition condition;
  absl::MutexLock lock(&mutex);
  const SteadyTime begin = SteadyNow();
  while (!condition.WaitWithTimeout(&mutex, absl::Milliseconds(30))) continue;
  EXPECT_GE(SteadyNow() - begin, std::chrono::milliseconds(30));
  EXPECT_TRUE(condition.WaitWithDeadline(&mutex, begin)) << "the deadline is past";
}

TEST(SteadyConditionTest, ASignalEndsAWaitBeforeItsTime) {
  absl::Mutex mutex;
  SteadyCondition condition;
  bool ready = false;
  std::thread signaller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    absl::MutexLock lock(&mutex);
    ready = true;
    condition.Signal();
  });
  {
    absl::MutexLock lock(&mutex);
    while (!ready) ASSERT_FALSE(condition.WaitWithTimeout(&mutex, absl::Seconds(60)));
  }
  signaller.join();
}

// A ball goes round; each turn is a signal that must not get lost, given with and without the
// mutex.
TEST(SteadyConditionTest, NoSignalGetsLost) {
  constexpr int kPlayers = 4, kTurns = 20000;
  absl::Mutex mutex;
  SteadyCondition turned;
  int turn = 0;
  std::vector<std::thread> players;
  for (int player = 0; player < kPlayers; ++player) {
    players.emplace_back([&, player] {
      while (true) {
        {
          absl::MutexLock lock(&mutex);
          while (turn < kTurns && turn % kPlayers != player) turned.Wait(&mutex);
          if (turn >= kTurns) return turned.SignalAll();
          ++turn;
          if (turn % 2 == 0) turned.SignalAll();
        }
        turned.SignalAll();
      }
    });
  }
  for (std::thread& player : players) player.join();
  EXPECT_EQ(turn, kTurns);
}

}  // namespace
}  // namespace varve
