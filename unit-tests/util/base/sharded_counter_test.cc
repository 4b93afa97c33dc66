#include "util/base/sharded_counter.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace varve {
namespace {

void AddFromThreads(ShardedCounter* counter, int threads, int additions) {
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([=] {
      for (int n = 0; n < additions; ++n) counter->Add(1);
    });
  }
  for (std::thread& worker : workers) worker.join();
}

TEST(ShardedCounterTest, StartsAtZeroAndAdds) {
  ShardedCounter counter;
  EXPECT_EQ(counter.Sum(), 0u);
  counter.Add(40);
  counter.Add(2);
  EXPECT_EQ(counter.Sum(), 42u);
}

TEST(ShardedCounterTest, CountersAreIndependent) {
  ShardedCounter first, second;
  first.Add(1);
  EXPECT_EQ(second.Sum(), 0u);
}

TEST(ShardedCounterTest, MoreThreadsThanSlotsLoseNothing) {
  ShardedCounter counter;
  AddFromThreads(&counter, 80, 20'000);
  EXPECT_EQ(counter.Sum(), 80u * 20'000u);
}

TEST(ShardedCounterTest, SlotsPassFromThreadToThread) {
  ShardedCounter counter;
  for (int generation = 0; generation < 50; ++generation) AddFromThreads(&counter, 4, 100);
  EXPECT_EQ(counter.Sum(), 50u * 4u * 100u);
}

TEST(ShardedCounterTest, EachSlotHasACacheLineOfItsOwn) {
  EXPECT_EQ(sizeof(ShardedCounter), sharded_counter_internal::kSlots * 64);
  EXPECT_EQ(alignof(ShardedCounter), 64u);
}

}  // namespace
}  // namespace varve
