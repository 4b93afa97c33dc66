// Eviction steps over a store and an access index on files, whose disks may fail or be full.
#include "server/eviction/eviction_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/server/eviction/order_fixture.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "util/base/hash.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::OrderFixture;

class EvictionStepTest : public OrderFixture {
 protected:
  EvictionStepTest() {
    parts_ = {.store = store_.get(),
              .index = index_.get(),
              .random = &random_,
              .access_of =
                  [this](NamespaceId, uint64_t hash, const KeyAccess& stored) {
                    const auto read = reads_.find(hash);
                    return read != reads_.end() ? read->second : stored;
                  },
              .evicted = [this](NamespaceId, std::string_view key, uint64_t,
                                SequenceNumber) { evicted_.emplace_back(key); }};
    soon_ms_ = store_->NowMillis() + 1'800'000;
    far_ms_ = soon_ms_ + 1'800'000;
  }
  // Evicts so many keys.
  void Evict(uint64_t keys) {
    EvictionStep step(parts_, {order_.get()}, WriteOptions());
    const absl::Status status = step.Run({.keys = keys});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(step.done().keys, keys);
  }
  // Puts three keys that are in files alone, and one that is in memory and goes last.
  void PutColdKeysAndAHotOne(EvictionRule rule) {
    Load(rule);
    evicted_.clear();
    for (const char* key : {"a", "b", "c"}) Put(key, soon_ms_);
    ASSERT_TRUE(store_->Flush().ok());
    clock_.Advance(10'000);
    Put("hot", far_ms_);
    clock_.Advance(10'000);
    WalkToTheEnd();
    ASSERT_EQ(order_->entries(), 4u);
  }
  void FailReads(const absl::Status& error) {
    store_files_.Fail(FileOperation::kRead, 1, error, FaultFileSystem::kUnlimited, ".seg");
  }
  // Has the index take nothing more for want of room, not even the smallest batch.
  void FillTheIndex() {
    const absl::Status full = absl::ResourceExhaustedError("no space left on the test's disk");
    for (const FileOperation operation : {FileOperation::kCreate, FileOperation::kGrow})
      files_.Fail(operation, 1, full, FaultFileSystem::kUnlimited);
    uint64_t rank = 0;
    for (const size_t key_size : {100'000, 4000, 1}) {
      const std::string key(key_size, 'k');
      absl::Status status;
      while (status.ok()) {
        WriteBatch batch;
        batch.Put(AccessIndex::OrderKey(kOther, 0, ++rank, key), "");
        status = index_->Commit(&batch);
      }
      ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    }
  }
  void GiveTheIndexRoom() {
    files_.ClearFaults();
    ASSERT_TRUE(Eventually([&] {
      WriteBatch batch;
      AccessIndex::PutAccess(kOther, 1, KeyAccess(), &batch);
      return index_->Commit(&batch).ok();
    }));
  }

  static constexpr NamespaceId kOther = 99;

  uint64_t random_ = 1;
  std::map<uint64_t, KeyAccess> reads_;  // by the hash of the key
  std::vector<std::string> evicted_;
  EvictionParts parts_;
  uint64_t soon_ms_ = 0, far_ms_ = 0;
};

// A count that grows by each of them would have the order begin anew without a reason.
TEST_F(EvictionStepTest, EntriesCountOnceWhoeverMakesThem) {
  Put("first", soon_ms_);
  Put("key", far_ms_);
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), 2u);
  Put("key", far_ms_ + 1000);
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), 3u);
  Evict(1);
  EXPECT_EQ(order_->entries(), 1u) << "the step moves an entry to where the walk made one";
  Put("first", soon_ms_);
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), 2u);
  Put("key", far_ms_ + 2000);
  Evict(1);
  EXPECT_EQ(order_->entries(), 1u);
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), 1u) << "the walk makes an entry where the step moved one";
  EXPECT_EQ(evicted_, (std::vector<std::string>{"first", "first"}));
}

// A swap of which nobody told the order, as the process ended meanwhile.
TEST_F(EvictionStepTest, KeysThatCameByASwapAreFoundOnceTheOrderIsEmpty) {
  constexpr NamespaceId kSwapped = 5;
  WriteBatch batch;
  batch.CreateNamespace({.id = kSwapped});
  batch.Put("old", "v", kSwapped);
  ASSERT_TRUE(store_->Write({}, &batch).ok());
  Put("new", far_ms_);
  WalkToTheEnd();
  batch.Clear();
  batch.SwapNamespaces(kDefaultNamespace, kSwapped);
  ASSERT_TRUE(store_->Write({}, &batch).ok());
  Evict(1);
  EXPECT_EQ(evicted_, (std::vector<std::string>{"old"}));
}

// A walk over all keys for each write that is refused would hold up everybody.
TEST_F(EvictionStepTest, WhatHasExpiredIsNoReasonToBeginAnew) {
  Load({.order = EvictionOrder::kLru, .volatile_only = true});
  for (int key = 0; key < 100; ++key) Put("key" + std::to_string(key), 0);
  Put("session", store_->NowMillis() + 1000);
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), 1u);
  const absl::StatusOr<SpaceRecord> before = index_->ReadSpace(kDefaultNamespace);
  clock_.Advance(2000);
  EvictionStep step(parts_, {order_.get()}, WriteOptions());
  const absl::Status status = step.Run({.keys = 1});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(step.done().keys, 0u);
  EXPECT_EQ(order_->entries(), 0u);
  const absl::StatusOr<SpaceRecord> after = index_->ReadSpace(kDefaultNamespace);
  ASSERT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  EXPECT_EQ(after->epoch, before->epoch);
}

TEST_F(EvictionStepTest, WhatTheIndexDidNotTakeIsMetAgain) {
  Load({.order = EvictionOrder::kLru});
  for (const char* key : {"a", "b", "c", "d"}) Put(key, 0);
  clock_.Advance(10'000);
  WalkToTheEnd();
  for (const char* key : {"a", "b"}) reads_[HashKey(key)] = {.at_ms = far_ms_, .uses = 1};
  FillTheIndex();
  {
    EvictionStep step(parts_, {order_.get()}, WriteOptions());
    const absl::Status status = step.Run({.keys = 1});
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(step.done().keys, 1u) << "it makes room, whatever becomes of the order";
    EXPECT_EQ(evicted_, (std::vector<std::string>{"c"}));
    EXPECT_FALSE(index_->is_damaged()) << "it goes on once there is room";
  }
  GiveTheIndexRoom();
  Evict(3);
  EXPECT_EQ(evicted_, (std::vector<std::string>{"c", "d", "a", "b"}));
}

// The device fails for a while, and only what is in memory can be read.
TEST_F(EvictionStepTest, KeysThatCannotBeReadStayInTheOrder) {
  for (const EvictionOrder order :
       {EvictionOrder::kLru, EvictionOrder::kLfu, EvictionOrder::kTtl, EvictionOrder::kRandom}) {
    SCOPED_TRACE(static_cast<int>(order));
    PutColdKeysAndAHotOne({.order = order});
    FailReads(absl::InternalError("on command"));
    EvictionStep step(parts_, {order_.get()}, WriteOptions());
    const absl::Status status = step.Run({.keys = 4});
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    // A random front may be without the hot key.
    if (order != EvictionOrder::kRandom) EXPECT_EQ(evicted_, (std::vector<std::string>{"hot"}));
    EXPECT_EQ(order_->entries() + evicted_.size(), 4u);
    store_files_.ClearFaults();
    clock_.Advance(10'000);
    Evict(4 - evicted_.size());
    std::sort(evicted_.begin(), evicted_.end());
    EXPECT_EQ(evicted_, (std::vector<std::string>{"a", "b", "c", "hot"}));
  }
}

TEST_F(EvictionStepTest, KeysThatAreDamagedLoseTheirEntries) {
  PutColdKeysAndAHotOne({.order = EvictionOrder::kLru});
  FailReads(absl::DataLossError("on command"));
  Evict(1);
  EXPECT_EQ(evicted_, (std::vector<std::string>{"hot"}));
  EXPECT_EQ(order_->entries(), 0u);
}

// Evictions may be what makes room for the index.
TEST_F(EvictionStepTest, AWalkThatFailsHoldsUpNoEvictions) {
  Load({.order = EvictionOrder::kLru});
  for (const char* key : {"a", "b"}) Put(key, 0);
  clock_.Advance(10'000);
  WalkToTheEnd();
  clock_.Advance(10'000);
  Put("without an entry", 0);
  clock_.Advance(10'000);
  for (const char* key : {"a", "b"}) reads_[HashKey(key)] = {.at_ms = far_ms_, .uses = 1};
  FillTheIndex();
  EvictionStep step(parts_, {order_.get()}, WriteOptions());
  const absl::Status status = step.Run({.keys = 1});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(step.done().keys, 1u);
}

TEST_F(EvictionStepTest, AWalkThatTheIndexDoesNotTakeBeginsAgain) {
  constexpr size_t kKeys = 300;
  for (size_t key = 0; key < kKeys; ++key) Put("key" + std::to_string(key), far_ms_ + key);
  FillTheIndex();
  EXPECT_TRUE(absl::IsResourceExhausted(order_->Walk(1000)));
  EXPECT_TRUE(order_->is_first_walk());
  EXPECT_FALSE(order_->walking());
  GiveTheIndexRoom();
  WalkToTheEnd();
  EXPECT_EQ(order_->entries(), kKeys);
  const absl::StatusOr<std::vector<OrderEntry>> entries = order_->Front(2 * kKeys, &random_);
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->size(), kKeys);
}

}  // namespace
}  // namespace varve
