#include "structure/job_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace varve {
namespace {

using Jobs = std::vector<std::function<void()>>;

TEST(JobThreadsTest, EachJobRunsOnce) {
  JobThreads threads(3);
  for (size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{20}}) {
    std::vector<std::atomic<int>> runs(count);
    Jobs jobs;
    for (std::atomic<int>& run : runs) jobs.emplace_back([&run] { ++run; });
    JobGroup(&threads, std::move(jobs), false).FinishAll();
    for (const std::atomic<int>& run : runs) EXPECT_EQ(run, 1);
  }
}

TEST(JobThreadsTest, JobsRunAtTheSameTime) {
  JobThreads threads(2);
  // Each one waits for the others.
  absl::Notification begun[3];
  Jobs jobs;
  for (absl::Notification& mine : begun) {
    jobs.emplace_back([&] {
      mine.Notify();
      for (absl::Notification& each : begun) each.WaitForNotification();
    });
  }
  JobGroup(&threads, std::move(jobs), false).FinishAll();
}

TEST(JobThreadsTest, WithoutThreadsTheCallerDoesAllJobs) {
  JobThreads none(0);
  for (JobThreads* threads : {static_cast<JobThreads*>(nullptr), &none}) {
    std::vector<int> order;
    Jobs jobs;
    for (int i = 0; i < 3; ++i) {
      jobs.emplace_back([&order, i, caller = std::this_thread::get_id()] {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        order.push_back(i);
      });
    }
    JobGroup group(threads, std::move(jobs), false);
    group.Finish(1);
    group.Finish(1);
    EXPECT_EQ(order, std::vector<int>{1});
    group.FinishAll();
    EXPECT_EQ(order, (std::vector<int>{1, 0, 2}));
  }
}

TEST(JobThreadsTest, TheCallerDoesWhatBusyThreadsHaveNotBegun) {
  JobThreads threads(1);
  absl::Notification begun, end;
  JobGroup busy(&threads, {[] {}, [&] { begun.Notify(), end.WaitForNotification(); }}, false);
  begun.WaitForNotification();
  int done = 0;
  JobGroup(&threads, {[&] { ++done; }, [&] { ++done; }, [&] { ++done; }}, false).FinishAll();
  EXPECT_EQ(done, 3);
  end.Notify();
}

TEST(JobThreadsTest, UrgentJobsComeFirst) {
  JobThreads threads(1);
  absl::Notification begun, end, all_done;
  absl::Mutex mutex;
  std::string order;
  const auto note = [&](char name) {
    return [&, name] {
      absl::MutexLock lock(&mutex);
      order += name;
      if (order.size() == 4) all_done.Notify();
    };
  };
  JobGroup busy(&threads, {[] {}, [&] { begun.Notify(), end.WaitForNotification(); }}, false);
  begun.WaitForNotification();
  JobGroup usual(&threads, {[] {}, note('c'), note('d')}, false);
  JobGroup urgent(&threads, {[] {}, note('a'), note('b')}, true);
  end.Notify();
  all_done.WaitForNotification();
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(order, "abcd");
}

TEST(JobThreadsTest, AGroupThatGoesDropsWhatNobodyBeganAndWaitsForTheRest) {
  JobThreads threads(1);
  absl::Notification begun;
  std::atomic<bool> ended{false}, dropped_one_ran{false};
  {
    JobGroup group(&threads,
                   {[&] { dropped_one_ran = true; },
                    [&] {
                      begun.Notify();
                      std::this_thread::yield();
                      ended = true;
                    }},
                   false);
    begun.WaitForNotification();
  }
  EXPECT_TRUE(ended);
  EXPECT_FALSE(dropped_one_ran);
}

}  // namespace
}  // namespace varve
