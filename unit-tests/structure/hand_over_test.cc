#include "structure/hand_over.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace varve {
namespace {

TEST(HandOverTest, AWordThatWasToldBeforeIsThere) {
  HandOver hand_over;
  hand_over.Tell(HandOver::kFirstWord);
  EXPECT_EQ(hand_over.Await(), HandOver::kFirstWord);
}

TEST(HandOverTest, TheTellerSeesWhetherAWordIsLookedFor) {
  HandOver hand_over;
  EXPECT_TRUE(hand_over.is_looked_for());
  std::thread waits([&] { EXPECT_EQ(hand_over.Await(), HandOver::kFirstWord); });
  while (hand_over.is_looked_for()) std::this_thread::yield();  // until it sleeps
  hand_over.Tell(HandOver::kFirstWord);
  EXPECT_FALSE(hand_over.is_looked_for());
  waits.join();
}

// Some waits end while the thread looks, and some while it sleeps; a hand-over that lost a word
// would never end.
TEST(HandOverTest, EachWordArrives) {
  constexpr uint32_t kRounds = 2000;
  std::atomic<HandOver*> next{nullptr};
  std::thread teller([&next] {
    for (uint32_t i = 0; i < kRounds; ++i) {
      HandOver* hand_over = nullptr;
      while ((hand_over = next.exchange(nullptr)) == nullptr) std::this_thread::yield();
      for (uint32_t pause = i % 16 * 200; pause > 0; --pause) SpinPause();
      hand_over->Tell(HandOver::kFirstWord + i);
    }
  });
  for (uint32_t i = 0; i < kRounds; ++i) {
    const auto hand_over = std::make_unique<HandOver>();
    next.store(hand_over.get());
    EXPECT_EQ(hand_over->Await(), HandOver::kFirstWord + i);
  }
  teller.join();
}

}  // namespace
}  // namespace varve
