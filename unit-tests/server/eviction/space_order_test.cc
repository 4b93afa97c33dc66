// The order in which a namespace's keys are evicted, over a store and an access index on files.
#include "server/eviction/space_order.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "unit-tests/server/eviction/order_fixture.h"
#include "unit-tests/testing/fault_file_system.h"
#include "util/base/status.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::FileOperation;

class SpaceOrderTest : public testing::OrderFixture {
 protected:
  static constexpr size_t kKeys = 20'000;

  void PutNumber(int number, uint64_t expiry_ms) { Put("key" + std::to_string(number), expiry_ms); }
  // Puts so many keys, and has them be in a segment.
  void PutInSegment() {
    WriteBatch batch;
    for (size_t key = 0; key < kKeys; ++key)
      batch.Put("key" + std::to_string(100'000 + key), std::string(40, 'v'));
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    ASSERT_TRUE(store_->Flush().ok());
  }
  // Damages some bytes of each segment behind `parts` eighths of it.
  void DamageSegments(uint64_t parts) {
    size_t damaged = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.File("store"))) {
      if (entry.path().extension() != ".seg") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(entry.file_size() * parts / 8));
      file << std::string(64, '\xff');
      ++damaged;
    }
    ASSERT_GT(damaged, 0u);
  }
  void ExpectAWalkThatPassesFewKeys() {
    WalkToTheEnd();
    EXPECT_FALSE(order_->is_first_walk());
    EXPECT_GT(order_->entries(), kKeys * 9 / 10);
    EXPECT_LT(order_->entries(), kKeys);
    EXPECT_FALSE(order_->NeedsWalk());
    Load({.order = EvictionOrder::kTtl});
    EXPECT_TRUE(order_->is_first_walk()) << "somebody may have repaired the store meanwhile";
  }
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

TEST_F(SpaceOrderTest, AWalkPassesADamagedBlock) {
  PutInSegment();
  DamageSegments(3);
  ExpectAWalkThatPassesFewKeys();
}

TEST_F(SpaceOrderTest, AWalkPassesADamagedBlockBeforeAllOthers) {
  PutInSegment();
  DamageSegments(0);
  ExpectAWalkThatPassesFewKeys();
}

TEST_F(SpaceOrderTest, WhatAWalkCouldNotReadIsLookedAtAgainLessAndLess) {
  PutInSegment();
  store_files_.Fail(FileOperation::kRead, 1, IoError(EIO, "read", "the test's device"),
                    FaultFileSystem::kUnlimited, ".seg");
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), 0u);
  EXPECT_FALSE(order_->NeedsWalk());
  EXPECT_FALSE(order_->MayMissKeysBefore(kNeverSoon));
  clock_.Advance(60'000);
  EXPECT_TRUE(order_->NeedsWalk());
  EXPECT_TRUE(order_->MayMissKeysBefore(kNeverSoon));
  EXPECT_TRUE(order_->is_long_walk());
  WalkToTheEnd();
  clock_.Advance(60'000);
  EXPECT_FALSE(order_->NeedsWalk());
  clock_.Advance(60'000);
  EXPECT_TRUE(order_->NeedsWalk());
  store_files_.ClearFaults();
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), kKeys);
  clock_.Advance(1'000'000);
  EXPECT_FALSE(order_->NeedsWalk());
  Load({.order = EvictionOrder::kTtl});
  EXPECT_FALSE(order_->is_first_walk());
}

}  // namespace
}  // namespace varve
