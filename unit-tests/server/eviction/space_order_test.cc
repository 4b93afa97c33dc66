// The order in which a namespace's keys are evicted, over a store and an access index on files.
#include "server/eviction/space_order.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::TempDir;

class SpaceOrderTest : public ::testing::Test {
 protected:
  SpaceOrderTest() {
    auto store = StorageEngine::Open(dir_.File("store"), {.sync = Durability::kNone});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto index = AccessIndex::Open(dir_.File("access"), 16u << 20, PosixFileSystem());
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
    auto order = SpaceOrder::Load(store_.get(), index_.get(), kDefaultNamespace,
                                  {.order = EvictionOrder::kTtl});
    EXPECT_TRUE(order.ok()) << order.status();
    order_ = *std::move(order);
  }
  void Put(int number, uint64_t expiry_ms) {
    WriteBatch batch;
    batch.Put("key" + std::to_string(number), "v", kSelectedNamespace, expiry_ms);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    order_->NoteExpiry(expiry_ms);
  }
  void WalkToTheEnd() {
    do {
      ASSERT_TRUE(order_->Walk(1000).ok());
    } while (order_->walking());
  }

  TempDir dir_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<AccessIndex> index_;
  std::unique_ptr<SpaceOrder> order_;
};

// While a walk is under way, it has yet to enter most of what was written before it.
TEST_F(SpaceOrderTest, KeysThatAWalkHasYetToEnterAreMissedUntilItsEnd) {
  const uint64_t far_ms = store_->NowMillis() + 3'600'000, soon_ms = far_ms - 1'800'000;
  Put(0, far_ms);
  WalkToTheEnd();
  EXPECT_FALSE(order_->MayMissKeysBefore(far_ms));
  for (int i = 1; i <= 500; ++i) Put(i, soon_ms + static_cast<uint64_t>(i));
  EXPECT_TRUE(order_->MayMissKeysBefore(far_ms));
  ASSERT_TRUE(order_->Walk(1).ok());
  ASSERT_TRUE(order_->walking());
  EXPECT_TRUE(order_->MayMissKeysBefore(far_ms));
  EXPECT_FALSE(order_->MayMissKeysBefore(soon_ms)) << "nothing comes before that";
  Put(501, soon_ms - 1);
  WalkToTheEnd();
  EXPECT_TRUE(order_->MayMissKeysBefore(far_ms)) << "the walk did not see the last key";
  EXPECT_FALSE(order_->MayMissKeysBefore(soon_ms - 1));
  WalkToTheEnd();
  EXPECT_FALSE(order_->MayMissKeysBefore(far_ms));
}

}  // namespace
}  // namespace varve
