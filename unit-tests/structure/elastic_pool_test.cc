#include "structure/elastic_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Eventually;

TEST(ElasticPoolTest, StartsNoThreadBeforeItIsAsked) {
  ElasticPool pool("test", 4, 4);
  EXPECT_EQ(pool.threads(), 0u);
}

TEST(ElasticPoolTest, HasAThreadForEachTaskThatSleeps) {
  constexpr int kTasks = 20;
  // What the tasks use outlives the pool, which waits for them.
  absl::BlockingCounter all_run(kTasks);
  absl::Notification done;
  ElasticPool pool("test", kTasks, 0);
  // Each of the tasks waits for all others: fewer threads would never end.
  for (int i = 0; i < kTasks; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&] {
      all_run.DecrementCount();
      done.WaitForNotification();
    }));
  }
  all_run.Wait();
  EXPECT_EQ(pool.threads(), static_cast<size_t>(kTasks));
  done.Notify();
}

TEST(ElasticPoolTest, TasksBeyondTheLimitWaitAndBeyondTheQueueAreRefused) {
  absl::Notification begun_one, begun_other, release;
  std::atomic<int> run{0};
  ElasticPool pool("test", 2, 3);
  ASSERT_TRUE(pool.TrySubmit([&] {
    begun_one.Notify();
    release.WaitForNotification();
  }));
  ASSERT_TRUE(pool.TrySubmit([&] {
    begun_other.Notify();
    release.WaitForNotification();
  }));
  begun_one.WaitForNotification();
  begun_other.WaitForNotification();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.TrySubmit([&] { run.fetch_add(1); }));
  EXPECT_EQ(pool.waiting(), 3u);
  EXPECT_FALSE(pool.TrySubmit([&] { run.fetch_add(100); }));
  release.Notify();
  pool.Stop();
  EXPECT_EQ(run, 3);
}

TEST(ElasticPoolTest, OneTaskAfterTheOtherNeedsOneThread) {
  ElasticPool pool("test", 8, 8);
  for (int i = 0; i < 100; ++i) {
    absl::Notification run;
    ASSERT_TRUE(pool.TrySubmit([&] { run.Notify(); }));
    run.WaitForNotification();
    // A task that came before the thread of the last one rests would start a second thread. Both
    // are 0 where the thread has ended, as one does that rests for long.
    ASSERT_TRUE(Eventually([&] { return pool.idle() == pool.threads(); }));
    ASSERT_LE(pool.threads(), 1u);
  }
}

TEST(ElasticPoolTest, StopRunsWhatWasTakenAndTakesNoMore) {
  std::atomic<int> run{0};
  absl::Notification begun, release;
  ElasticPool pool("test", 1, 100);
  ASSERT_TRUE(pool.TrySubmit([&] {
    begun.Notify();
    release.WaitForNotification();
  }));
  begun.WaitForNotification();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.TrySubmit([&] { run.fetch_add(1); }));
  std::thread stopping([&] { pool.Stop(); });
  release.Notify();
  stopping.join();
  EXPECT_EQ(run, 50);
  EXPECT_FALSE(pool.TrySubmit([&] { run.fetch_add(1); }));
  EXPECT_EQ(pool.threads(), 0u);
}

TEST(ElasticPoolTest, WhatATaskHoldsGoesBeforeItsThreadRests) {
  ElasticPool pool("test", 1, 10);
  const auto held = std::make_shared<int>(1);
  ASSERT_TRUE(pool.TrySubmit([held] {}));
  pool.Stop();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(ElasticPoolTest, ManyThreadsHandTasksOver) {
  constexpr int kThreads = 4, kTasks = 500;
  std::atomic<int> run{0};
  {
    ElasticPool pool("test", 3, kThreads * kTasks);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < kTasks; ++j) ASSERT_TRUE(pool.TrySubmit([&] { run.fetch_add(1); }));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(run, kThreads * kTasks);
}

}  // namespace
}  // namespace varve
