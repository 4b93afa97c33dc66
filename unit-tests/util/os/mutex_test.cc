// absl::Mutex itself is not ours to test. What is ours: that these programs are sound under
// ThreadSanitizer as well, as everything that guards data with a mutex relies on it
// (cmake/tsan_absl_mutex.cc).
#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "util/base/status.h"

namespace varve {
namespace {

struct Guarded {
  absl::Mutex mutex;
  absl::CondVar changed;
  std::vector<int> numbers ABSL_GUARDED_BY(mutex);
};

TEST(MutexTest, WhatIsGuardedIsNoRace) {
  Guarded guarded;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&guarded] {
      for (int i = 0; i < 2000; ++i) {
        absl::MutexLock lock(&guarded.mutex);
        guarded.numbers.push_back(i);
      }
    });
    threads.emplace_back([&guarded] {
      for (int i = 0; i < 2000; ++i) {
        absl::ReaderMutexLock lock(&guarded.mutex);
        ASSERT_LE(guarded.numbers.size(), 8000u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&guarded.mutex);
  EXPECT_EQ(guarded.numbers.size(), 8000u);
}

TEST(MutexTest, AConditionVariableHandsDataOver) {
  Guarded guarded;
  std::thread producer([&guarded] {
    for (int i = 0; i < 1000; ++i) {
      absl::MutexLock lock(&guarded.mutex);
      guarded.numbers.push_back(i);
      guarded.changed.SignalAll();
    }
  });
  {
    absl::MutexLock lock(&guarded.mutex);
    while (guarded.numbers.size() < 500)
      guarded.changed.WaitWithTimeout(&guarded.mutex, absl::Milliseconds(1));
    while (guarded.numbers.size() < 900) guarded.changed.Wait(&guarded.mutex);
    const auto complete = [&guarded]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(guarded.mutex) {
      return guarded.numbers.size() == 1000;
    };
    guarded.mutex.Await(absl::Condition(&complete));
    EXPECT_EQ(guarded.numbers.back(), 999);
  }
  producer.join();
}

TEST(MutexTest, AnErrorMayBeSharedBetweenThreads) {
  auto shared = std::make_unique<absl::Status>(
      Corruption("data/1.seg", 0, "a message that needs an allocation"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([copy = *shared] { EXPECT_EQ(copy.code(), absl::StatusCode::kDataLoss); });
  }
  shared.reset();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace varve
