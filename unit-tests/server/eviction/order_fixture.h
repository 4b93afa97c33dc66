// The fixture of eviction orders holds a store and an access index, on files of disks that may fail
// or be full, and an order of the default namespace's keys. The order is the one by expiry until a
// test loads another one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/eviction/access_index.h"
#include "server/eviction/space_order.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve::testing {

class OrderFixture : public ::testing::Test {
 protected:
  OrderFixture() {
    EngineOptions options;
    options.sync = Durability::kNone;
    options.clock = &clock_;
    options.file_system = &store_files_;
    auto store = StorageEngine::Open(dir_.File("store"), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto index = AccessIndex::Open(dir_.File("access"), 64u << 20, &files_);
    EXPECT_TRUE(index.ok()) << index.status();
    index_ = *std::move(index);
    Load({.order = EvictionOrder::kTtl});
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

  TempDir dir_;
  ManualClock clock_;
  FaultFileSystem files_;  // of the index
  FaultFileSystem store_files_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<AccessIndex> index_;
  std::unique_ptr<SpaceOrder> order_;
};

}  // namespace varve::testing
