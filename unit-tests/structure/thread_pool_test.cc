#include "structure/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "absl/synchronization/mutex.h"

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
  ThreadPool pool("test", 1, 2);
  std::promise<void> durable_after;
  std::promise<void> running;
  const std::shared_future<void> opened = durable_after.get_future().share();
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

TEST(ThreadPoolTest, TasksRunSideBySide) {
  ThreadPool pool("test", 2, 8);
  std::promise<void> first_runs;
  std::promise<void> second_ran;
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
