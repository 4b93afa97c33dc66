#include "structure/published.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace varve {
namespace {

struct Object {
  explicit Object(int number) : value(number) { ++alive; }
  ~Object() {
    value = -1;
    --alive;
  }
  int value;
  static std::atomic<int> alive;
};
std::atomic<int> Object::alive{0};

TEST(PublishedTest, WhatIsPinnedStaysUntilItIsGivenBack) {
  {
    Published<Object> published(std::make_shared<Object>(1));
    auto pin = std::make_unique<Published<Object>::Pin>(published.Acquire());
    EXPECT_EQ((*pin)->value, 1);
    EXPECT_TRUE(published.IsCurrent(*pin));
    published.Replace(std::make_shared<Object>(2));
    EXPECT_FALSE(published.IsCurrent(*pin));
    EXPECT_EQ(published.Reclaim(), 1u);
    EXPECT_EQ((*pin)->value, 1);
    EXPECT_EQ(published.Acquire()->value, 2);  // a second pin of the same thread
    pin.reset();
    EXPECT_EQ(published.Reclaim(), 0u);
    EXPECT_EQ(Object::alive, 1);
  }
  EXPECT_EQ(Object::alive, 0);
}

TEST(PublishedTest, ReadersNeverSeeAnObjectThatWasGivenBack) {
  Published<Object> published(std::make_shared<Object>(1));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      int newest = 0;
      while (!done) {
        const auto pin = published.Acquire();
        ASSERT_GE(pin->value, newest);
        newest = pin->value;
      }
    });
  }
  for (int i = 2; i < 3000; ++i) {
    published.Replace(std::make_shared<Object>(i));
    published.Reclaim();
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(published.Reclaim(), 0u);
}

}  // namespace
}  // namespace varve
