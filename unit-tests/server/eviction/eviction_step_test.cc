// Eviction steps over a store and an access index on files, whose disk may be full.
#include "server/eviction/eviction_step.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/eviction/access_index.h"
#include "server/eviction/space_order.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/hash.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::TempDir;

class EvictionStepTest : public ::testing::Test {
 protected:
  EvictionStepTest() {
    auto store = StorageEngine::Open(dir_.File("store"), {.sync = Durability::kNone});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto index = AccessIndex::Open(dir_.File("access"), 64u << 20, &files_);
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
    Load({.order = EvictionOrder::kTtl});
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
  void Load(EvictionRule rule) {
    auto order = SpaceOrder::Load(store_.get(), index_.get(), kDefaultNamespace, rule);
    ASSERT_TRUE(order.ok()) << order.status();
    order_ = *std::move(order);
  }
  void Put(const std::string& key, uint64_t expiry_ms) {
    WriteBatch batch;
    batch.Put(key, "v", kSelectedNamespace, expiry_ms);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    order_->NoteExpiry(expiry_ms);
  }
  void WalkToTheEnd() {
    do {
      ASSERT_TRUE(order_->Walk(1000).ok());
    } while (order_->walking());
  }
  // Evicts so many keys.
  void Evict(uint64_t keys) {
    EvictionStep step(parts_, {order_.get()}, WriteOptions());
    const absl::StatusOr<EvictionStep::Result> done = step.Run({.keys = keys});
    ASSERT_TRUE(done.ok()) << done.status();
    EXPECT_EQ(done->keys, keys);
  }

  TempDir dir_;
  FaultFileSystem files_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<AccessIndex> index_;
  std::unique_ptr<SpaceOrder> order_;
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

}  // namespace
}  // namespace varve
