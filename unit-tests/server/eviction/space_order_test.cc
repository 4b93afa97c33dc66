// The order in which a namespace's keys are evicted, over a store and an access index on files.
#include "server/eviction/space_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "unit-tests/server/eviction/order_fixture.h"

namespace varve {
namespace {

class SpaceOrderTest : public testing::OrderFixture {
 protected:
  void PutNumber(int number, uint64_t expiry_ms) { Put("key" + std::to_string(number), expiry_ms); }
};

// While a walk is under way, it has yet to enter most of what was written before it.
TEST_F(SpaceOrderTest, KeysThatAWalkHasYetToEnterAreMissedUntilItsEnd) {
  const uint64_t far_ms = store_->NowMillis() + 3'600'000, soon_ms = far_ms - 1'800'000;
  PutNumber(0, far_ms);
  WalkToTheEnd();
  EXPECT_FALSE(order_->MayMissKeysBefore(far_ms));
  for (int i = 1; i <= 500; ++i) PutNumber(i, soon_ms + static_cast<uint64_t>(i));
  EXPECT_TRUE(order_->MayMissKeysBefore(far_ms));
  ASSERT_TRUE(order_->Walk(1).ok());
  ASSERT_TRUE(order_->walking());
  EXPECT_TRUE(order_->MayMissKeysBefore(far_ms));
  EXPECT_FALSE(order_->MayMissKeysBefore(soon_ms)) << "nothing comes before that";
  PutNumber(501, soon_ms - 1);
  WalkToTheEnd();
  EXPECT_TRUE(order_->MayMissKeysBefore(far_ms)) << "the walk did not see the last key";
  EXPECT_FALSE(order_->MayMissKeysBefore(soon_ms - 1));
  WalkToTheEnd();
  EXPECT_FALSE(order_->MayMissKeysBefore(far_ms));
}

}  // namespace
}  // namespace varve
