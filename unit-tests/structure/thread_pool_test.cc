#include "structure/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "util/os/disk_wait.h"

namespace varve {
namespace {

TEST(ThreadPoolTest, RunsEveryTaskItTookBeforeItStops) {
  std::atomic<int> ran{0};
  int taken = 0;
  {
    ThreadPool pool("test", 3, 16);
    for (int i = 0; i < 5000; ++i) {
      if (pool.TrySubmit([&] { ran.fetch_add(1); })) ++taken;
    }
    pool.Stop();
    EXPECT_FALSE(pool.TrySubmit([&] { ran.fetch_add(1); }));
  }
  EXPECT_GT(taken, 0);
  EXPECT_EQ(ran.load(), taken);
}

TEST(ThreadPoolTest, AFullQueueRefuses) {
  std::promise<void> durable_after;
  std::promise<void> running;
  const std::shared_future<void> opened = durable_after.get_future().share();
  ThreadPool pool("test", 1, 2);
  ASSERT_TRUE(pool.TrySubmit([&running, opened] {
    running.set_value();
    opened.wait();
  }));
  running.get_future().wait();
  EXPECT_TRUE(pool.TrySubmit([] {}));
  EXPECT_TRUE(pool.TrySubmit([] {}));
  EXPECT_FALSE(pool.TrySubmit([] {}));
  durable_after.set_value();
}

// Returns the first tick of the coarse clock behind `since`.
ThreadPool::Time AwaitTick(ThreadPool::Time since) {
  while (true) {
    if (const ThreadPool::Time now = CoarseNow(); now > since) return now;
    std::this_thread::yield();
  }
}

TEST(ThreadPoolTest, AThreadIsIdleWhileItHasNoTask) {
  std::promise<void> running, ends;
  ThreadPool pool("test", 2, 8);  // goes first, and waits for the task that uses both
  ASSERT_TRUE(pool.TrySubmit([&] {
    running.set_value();
    ends.get_future().wait();
  }));
  running.get_future().wait();
  const ThreadPool::Time begin = CoarseNow();
  const std::vector<int64_t> before = pool.IdleNanos(begin);
  ASSERT_EQ(before.size(), 2u);
  ThreadPool::Time now = AwaitTick(begin);
  std::vector<int64_t> after = pool.IdleNanos(now);
  // The other thread may have been about to rest.
  for (; after == before; after = pool.IdleNanos(now)) now = AwaitTick(now);
  const bool first_works = after[0] == before[0];
  EXPECT_EQ(after[first_works ? 0 : 1], before[first_works ? 0 : 1]) << "it has a task";
  EXPECT_LE(after[first_works ? 1 : 0] - before[first_works ? 1 : 0], (now - begin).count());
  ends.set_value();
}

TEST(ThreadPoolTest, AWaitForTheDiskIsNoWork) {
  std::promise<void> running, ends;
  ThreadPool pool("test", 1, 8);  // goes first, and waits for the task that uses both
  ASSERT_TRUE(pool.TrySubmit([&] {
    const DiskWait wait;
    running.set_value();
    ends.get_future().wait();
  }));
  running.get_future().wait();
  const ThreadPool::Time begin = CoarseNow();
  const int64_t before = pool.IdleNanos(begin)[0];
  const ThreadPool::Time now = AwaitTick(begin);
  EXPECT_EQ(pool.IdleNanos(now)[0] - before, (now - begin).count());
  ends.set_value();
}

TEST(ThreadPoolTest, TasksRunSideBySide) {
  std::promise<void> first_runs;
  std::promise<void> second_ran;
  ThreadPool pool("test", 2, 8);
  // The first task ends only when the second has run.
  ASSERT_TRUE(pool.TrySubmit([&] {
    first_runs.set_value();
    second_ran.get_future().wait();
  }));
  first_runs.get_future().wait();
  ASSERT_TRUE(pool.TrySubmit([&] { second_ran.set_value(); }));
  pool.Stop();
}

}  // namespace
}  // namespace varve
