#include "structure/concurrent_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/thread_state.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::IsAsleep;

TEST(ConcurrentQueueTest, KeepsOrderAndItsBound) {
  ConcurrentQueue<int> queue(3);
  EXPECT_EQ(queue.capacity(), 4u);
  EXPECT_FALSE(queue.TryPop().has_value());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.TryPush(std::move(i)));
  EXPECT_FALSE(queue.TryPush(9));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.TryPop(), i);
  EXPECT_FALSE(queue.TryPop().has_value());
  for (int round = 0; round < 100; ++round) {  // around the ring
    EXPECT_TRUE(queue.TryPush(std::move(round)));
    EXPECT_EQ(queue.TryPop(), round);
  }
}

TEST(ConcurrentQueueTest, AFullQueueLeavesTheElementWithItsOwner) {
  ConcurrentQueue<std::unique_ptr<int>> queue(2);
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(1)));
  EXPECT_TRUE(queue.TryPush(std::make_unique<int>(2)));
  auto third = std::make_unique<int>(3);
  EXPECT_FALSE(queue.TryPush(std::move(third)));
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(*third, 3);
}

TEST(ConcurrentQueueTest, AClosedQueueGivesOutWhatItHoldsThenEnds) {
  ConcurrentQueue<int> queue(8);
  EXPECT_TRUE(queue.TryPush(1));
  queue.Close();
  EXPECT_FALSE(queue.TryPush(2));
  EXPECT_EQ(queue.Pop(), 1);
  EXPECT_FALSE(queue.Pop().has_value());
}

TEST(ConcurrentQueueTest, CloseWakesSleepers) {
  ConcurrentQueue<int> queue(8);
  std::atomic<pid_t> ids[4] = {};
  std::vector<std::thread> sleepers;
  for (std::atomic<pid_t>& id : ids) {
    sleepers.emplace_back([&] {
      id = gettid();
      EXPECT_FALSE(queue.Pop().has_value());
    });
  }
  for (const std::atomic<pid_t>& id : ids)
    EXPECT_TRUE(Eventually([&] { return id != 0 && IsAsleep(id); }));
  queue.Close();
  for (std::thread& sleeper : sleepers) sleeper.join();
}

// Where an element of a thread stands that loses its processor in the middle of a push.
struct Pause {
  std::atomic<bool> is_in_push{false};
  std::atomic<bool> is_over{false};
};

class SlowElement {
 public:
  SlowElement() = default;
  explicit SlowElement(Pause* pause) : pause_(pause) {}
  SlowElement(SlowElement&&) noexcept {}
  SlowElement& operator=(SlowElement&& other) noexcept {
    if (other.pause_ == nullptr) return *this;
    other.pause_->is_in_push = true;
    other.pause_->is_in_push.notify_all();
    other.pause_->is_over.wait(false);
    return *this;
  }

 private:
  Pause* const pause_ = nullptr;
};

TEST(ConcurrentQueueTest, WhatIsReadyBehindASlowPushIsNotLeftLying) {
  ConcurrentQueue<SlowElement> queue(8);
  Pause pause;
  std::thread slow([&] { EXPECT_TRUE(queue.TryPush(SlowElement(&pause))); });
  pause.is_in_push.wait(false);
  EXPECT_TRUE(queue.TryPush(SlowElement()));
  std::atomic<pid_t> ids[2] = {};
  std::atomic<int> taken{0};
  std::vector<std::thread> consumers;
  for (std::atomic<pid_t>& id : ids) {
    consumers.emplace_back([&] {
      id = gettid();
      EXPECT_TRUE(queue.Pop().has_value());
      ++taken;
      // The work with the one element goes on until the other one is taken.
      EXPECT_TRUE(Eventually([&] { return taken == 2; }));
    });
  }
  for (const std::atomic<pid_t>& id : ids)
    EXPECT_TRUE(Eventually([&] { return id != 0 && IsAsleep(id); }));
  pause.is_over = true;
  pause.is_over.notify_all();
  slow.join();
  EXPECT_TRUE(Eventually([&] { return taken == 2; }));
  queue.Close();
  for (std::thread& consumer : consumers) consumer.join();
}

TEST(ConcurrentQueueTest, EveryElementArrivesOnceAndEachProducersInOrder) {
  constexpr int kProducers = 4;
  constexpr int kConsumers = 4;
  constexpr int kEach = 20000;
  ConcurrentQueue<int> queue(64);
  std::vector<std::atomic<int>> seen(kProducers * kEach);
  std::atomic<bool> ordered{true};
  std::vector<std::thread> consumers;
  for (int c = 0; c < kConsumers; ++c) {
    consumers.emplace_back([&] {
      std::vector<int> last(kProducers, -1);
      while (const std::optional<int> element = queue.Pop()) {
        const int producer = *element / kEach;
        if (*element <= last[static_cast<size_t>(producer)]) ordered = false;
        last[static_cast<size_t>(producer)] = *element;
        seen[static_cast<size_t>(*element)].fetch_add(1);
      }
    });
  }
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        int element = p * kEach + i;
        while (!queue.TryPush(std::move(element))) std::this_thread::yield();
      }
    });
  }
  for (std::thread& producer : producers) producer.join();
  queue.Close();
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_TRUE(ordered);
  for (const std::atomic<int>& count : seen) ASSERT_EQ(count.load(), 1);
}

}  // namespace
}  // namespace varve
