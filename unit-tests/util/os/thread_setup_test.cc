#include "util/os/thread_setup.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace varve {
namespace {

constexpr int kHighestNice = 19;

int NiceOf(pid_t thread) { return getpriority(PRIO_PROCESS, static_cast<id_t>(thread)); }

// Becomes a process with so high a nice value, and ends: with 0 if a background thread of it is at
// the nice value that it should be at, before and after it has worked in the time of others.
[[noreturn]] void ExitAtNice(int nice) {
  const int wanted = std::min(nice + 5, kHighestNice);
  bool is_there = setpriority(PRIO_PROCESS, static_cast<id_t>(getpid()), nice) == 0;
  std::thread([&] {
    YieldToForeground();
    is_there = is_there && NiceOf(gettid()) == wanted && sched_getscheduler(0) == SCHED_BATCH;
    if (!YieldToEveryone()) return;
    is_there = is_there && sched_getscheduler(0) == SCHED_IDLE;
    YieldToForeground();
    is_there = is_there && NiceOf(gettid()) == wanted && sched_getscheduler(0) == SCHED_BATCH;
  }).join();
  _exit(is_there && NiceOf(getpid()) == nice ? 0 : 1);
}

TEST(ThreadSetupTest, ABackgroundThreadComesBehindThoseThatAnswerWhateverTheProcessHas) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const int own = NiceOf(getpid());
  for (const int nice : {own, std::max(own, 10), kHighestNice})
    EXPECT_EXIT(ExitAtNice(nice), ::testing::ExitedWithCode(0), "") << nice;
}

}  // namespace
}  // namespace varve
