#include "util/os/thread_pace.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "util/os/thread_setup.h"

namespace varve {
namespace {

// Works for so long, or until it has rested.
std::chrono::nanoseconds RestsOfWork(std::chrono::milliseconds longest, bool is_urgent) {
  std::chrono::nanoseconds rested{0};
  std::thread worker([&] {
    ThreadPace pace(ThreadPace::Manner::kRests);
    const SteadyTime end = SteadyNow() + longest;
    while (SteadyNow() < end && pace.rested().count() == 0) pace.Rest(is_urgent);
    rested = pace.rested();
  });
  worker.join();
  return rested;
}

// Works until it has this policy, for so long at most.
bool Becomes(ThreadPace* pace, int policy, bool is_urgent, std::chrono::milliseconds longest) {
  const SteadyTime end = SteadyNow() + longest;
  while (SteadyNow() < end && sched_getscheduler(0) != policy) pace->Rest(is_urgent);
  return sched_getscheduler(0) == policy;
}

// Threads that want all processors, until it ends.
class Others {
 public:
  Others() : threads_(2 * std::thread::hardware_concurrency()) {
    for (std::thread& thread : threads_) {
      thread = std::thread([this] {
        while (!ends_) {
        }
      });
    }
  }
  ~Others() {
    ends_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

class ThreadPaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/thread-self/schedstat"))
      GTEST_SKIP() << "the kernel doesn't say who waits";
  }

  // In a background thread; skips where the kernel doesn't let it come back.
  void InBackground(const std::function<void()>& work) {
    bool may_yield = false;
    std::thread([&] {
      YieldToForeground();
      may_yield = YieldToEveryone();
      if (!may_yield) return;
      YieldToForeground();
      work();
    }).join();
    if (!may_yield) GTEST_SKIP() << "takes CAP_SYS_NICE";
  }
};

TEST_F(ThreadPaceTest, RestsWhereOthersWantTheProcessorsUnlessItHurries) {
  const Others others;
  EXPECT_EQ(RestsOfWork(std::chrono::milliseconds(200), /*is_urgent=*/true).count(), 0);
  EXPECT_GT(RestsOfWork(std::chrono::seconds(20), /*is_urgent=*/false).count(), 0);
}

TEST_F(ThreadPaceTest, WorksInWhatTimeTheOthersLeaveUntilItHurriesOrEnds) {
  InBackground([] {
    {
      ThreadPace pace;
      EXPECT_TRUE(Becomes(&pace, SCHED_IDLE, /*is_urgent=*/false, std::chrono::seconds(20)));
      EXPECT_TRUE(Becomes(&pace, SCHED_BATCH, /*is_urgent=*/true, std::chrono::seconds(20)));
      EXPECT_TRUE(Becomes(&pace, SCHED_IDLE, /*is_urgent=*/false, std::chrono::seconds(20)));
      EXPECT_EQ(pace.rested().count(), 0);
    }
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
  });
}

TEST_F(ThreadPaceTest, TakesItsShareBeforeOthersMayWaitForIt) {
  InBackground([] {
    ThreadPace pace;
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(Becomes(&pace, SCHED_IDLE, /*is_urgent=*/false, std::chrono::seconds(20)));
      pace.TakeShare();
      EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    }
  });
}

TEST_F(ThreadPaceTest, TakesItsShareWhereTheOthersLeaveNothing) {
  const Others others;
  InBackground([] {
    ThreadPace pace;
    EXPECT_TRUE(Becomes(&pace, SCHED_IDLE, /*is_urgent=*/false, std::chrono::seconds(20)));
    EXPECT_TRUE(Becomes(&pace, SCHED_BATCH, /*is_urgent=*/false, std::chrono::seconds(60)));
  });
}

}  // namespace
}  // namespace varve
