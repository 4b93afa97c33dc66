#include "server/net/shared_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace varve {
namespace {

TEST(SharedWorkTest, OwnerAndHelpersTakeFromBothEndsUntilTheyMeet) {
  SharedWork<int> work;
  EXPECT_EQ(work.TakeFirst(), nullptr);
  EXPECT_EQ(work.TakeLast(), nullptr);
  int items[4] = {0, 1, 2, 3};
  for (int& item : items) ASSERT_TRUE(work.Add(&item));
  EXPECT_EQ(work.TakeLast(), nullptr) << "nothing can be taken before the list is opened";
  EXPECT_EQ(work.added(), 4u);
  work.Open();
  EXPECT_EQ(work.TakeFirst(), &items[0]);
  EXPECT_EQ(work.TakeLast(), &items[3]);
  EXPECT_EQ(work.TakeLast(), &items[2]);
  EXPECT_EQ(work.TakeFirst(), &items[1]);
  EXPECT_EQ(work.TakeFirst(), nullptr);
  EXPECT_EQ(work.TakeLast(), nullptr);
  EXPECT_EQ(work.added(), 0u);
}

TEST(SharedWorkTest, TakesNoMoreThanItHolds) {
  SharedWork<int> work;
  int item = 0;
  for (size_t i = 0; i < SharedWork<int>::kCapacity; ++i) ASSERT_TRUE(work.Add(&item));
  EXPECT_FALSE(work.Add(&item));
  work.Open();
  size_t taken = 0;
  while (work.TakeLast() != nullptr) ++taken;
  EXPECT_EQ(taken, SharedWork<int>::kCapacity);
}

// Helpers stay over many lists, so they also come between the end of one and the next.
TEST(SharedWorkTest, EachItemIsTakenOnceByThreadsThatCompete) {
  constexpr int kLists = 3000;
  SharedWork<std::atomic<int>> work;
  std::vector<std::atomic<int>> items(37);
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> helped{0};
  std::vector<std::thread> helpers;
  for (int i = 0; i < 3; ++i) {
    helpers.emplace_back([&] {
      while (!ended.load()) {
        if (std::atomic<int>* const item = work.TakeLast()) {
          item->fetch_add(1);
          helped.fetch_add(1);
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  uint64_t own = 0;
  for (int list = 1; list <= kLists; ++list) {
    for (std::atomic<int>& item : items) ASSERT_TRUE(work.Add(&item));
    work.Open();
    for (; std::atomic<int>* const item = work.TakeFirst(); ++own) item->fetch_add(1);
    for (std::atomic<int>& item : items) {
      while (item.load() < list) std::this_thread::yield();  // a helper has it
    }
  }
  ended.store(true);
  for (std::thread& helper : helpers) helper.join();
  for (const std::atomic<int>& item : items) EXPECT_EQ(item.load(), kLists);
  EXPECT_EQ(own + helped.load(), items.size() * kLists);
}

}  // namespace
}  // namespace varve
