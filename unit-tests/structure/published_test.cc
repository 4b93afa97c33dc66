#include "structure/published.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/thread_state.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::IsAsleep;

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

// An object whose destruction stays in the middle until somebody lets it go on.
struct SlowToGo {
  ~SlowToGo() {
    if (goes_on == nullptr) return;
    begun->Notify();
    goes_on->WaitForNotification();
    *is_gone = true;
  }
  absl::Notification* begun = nullptr;
  absl::Notification* goes_on = nullptr;
  std::atomic<bool>* is_gone = nullptr;
};

TEST(PublishedTest, WhatAnotherThreadLetsGoOfIsAwaited) {
  absl::Notification begun, goes_on;
  std::atomic<bool> is_gone{false}, has_waited{false};
  auto slow = std::make_shared<SlowToGo>();
  slow->begun = &begun, slow->goes_on = &goes_on, slow->is_gone = &is_gone;
  Published<SlowToGo> published(std::move(slow));
  published.AwaitReleases();
  published.Replace(std::make_shared<SlowToGo>());
  std::thread releasing([&] { EXPECT_EQ(published.Reclaim(), 0u); });
  begun.WaitForNotification();
  EXPECT_EQ(published.Reclaim(), 0u) << "there is no other one";
  std::atomic<pid_t> id{0};
  std::thread waiting([&] {
    id = gettid();
    published.AwaitReleases();
    has_waited = true;
    EXPECT_TRUE(is_gone);
  });
  EXPECT_TRUE(Eventually([&] { return has_waited || (id != 0 && IsAsleep(id)); }));
  EXPECT_FALSE(has_waited);
  goes_on.Notify();
  releasing.join();
  waiting.join();
}

}  // namespace
}  // namespace varve
