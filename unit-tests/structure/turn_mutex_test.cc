#include "structure/turn_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Eventually;

TEST(TurnMutexTest, WhoAskedBeforeComesIn) {
  TurnMutex mutex;
  bool came = false;
  mutex.Lock();
  std::thread other([&] {
    const TurnLock lock(&mutex);
    came = true;
  });
  EXPECT_TRUE(Eventually([&] {
    mutex.AssertHeld();
    return mutex.OthersWait();
  }));
  mutex.LetOthersIn();
  EXPECT_TRUE(came);
  EXPECT_FALSE(mutex.OthersWait());
  mutex.LetOthersIn();  // nobody waits: it returns at once
  mutex.Unlock();
  other.join();
}

TEST(TurnMutexTest, LongWorkAndManyOthersGoOn) {
  constexpr int kThreads = 4, kTurns = 2000;
  TurnMutex mutex;
  int turns = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < kThreads; ++i) {
    others.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const TurnLock lock(&mutex);
        ++turns;
      }
    });
  }
  {
    absl::MutexLock lock(&mutex);
    for (int slice = 0; slice < kTurns; ++slice) mutex.LetOthersIn();
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(turns, kThreads * kTurns);
}

}  // namespace
}  // namespace varve
