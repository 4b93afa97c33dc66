// The limit on the bytes of all namespaces: what is refused, what it answers at once, and when keys
// are counted.
#include "db/commit/data_bound.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;

constexpr uint64_t kLimit = 10'000;

class DataBoundTest : public ::testing::Test {
 protected:
  DataBoundTest() : store_(Options()) {
    WriteBatch databases;
    for (const NamespaceId id : {3, 4, 5}) databases.CreateNamespace({.id = id});
    EXPECT_TRUE(store_->Write({}, &databases).ok());
    store_->SetDataLimit(kLimit);
  }

  EngineOptions Options() {
    EngineOptions options = testing::TestEngineOptions();
    options.clock = &clock_;
    return options;
  }
  absl::Status TryPut(const std::string& key, size_t value_size,
                      NamespaceId space = kDefaultNamespace, uint64_t expiry_ms = kNoExpiry) {
    WriteBatch batch;
    batch.Put(key, std::string(value_size, 'v'), space, expiry_ms);
    return store_->Write({}, &batch).status();
  }
  void Put(const std::string& key, size_t value_size, NamespaceId space = kDefaultNamespace,
           uint64_t expiry_ms = kNoExpiry) {
    const absl::Status status = TryPut(key, value_size, space, expiry_ms);
    ASSERT_TRUE(status.ok()) << status;
  }
  uint64_t Bytes() { return store_->CountData().value(); }
  DataCheck Check(uint64_t more = 0) { return store_->CheckData(more); }

  ManualClock clock_;
  TestStore store_;
};

TEST_F(DataBoundTest, OnlyACountTellsAtFirst) {
  EXPECT_EQ(Check(), DataCheck::kMustCount);
  EXPECT_EQ(Bytes(), 0u);
  EXPECT_EQ(Check(), DataCheck::kWithin);
  EXPECT_EQ(Check(kLimit), DataCheck::kWithin);
  EXPECT_EQ(Check(kLimit + 1), DataCheck::kMustCount);
  store_->SetDataLimit(0);
  EXPECT_EQ(Check(kLimit + 1), DataCheck::kWithin);
}

TEST_F(DataBoundTest, TheLimitIsExact) {
  for (int i = 0; i < 9; ++i) Put("key" + std::to_string(i), 1000);
  const absl::Status full = TryPut("key9", 1000);
  EXPECT_TRUE(IsStoreFull(full)) << full;
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_FALSE(IsNamespaceFull(full));
  Put("x", kLimit - 9 * 1004 - 1);
  EXPECT_EQ(Bytes(), kLimit);
  EXPECT_TRUE(IsStoreFull(TryPut("y", 0)));
  EXPECT_TRUE(IsStoreFull(TryPut("key3", 1001)));
  Put("key3", 1000);
  Put("key3", 999);
  EXPECT_TRUE(IsStoreFull(TryPut("yy", 0)));
  Put("y", 0);
  ASSERT_TRUE(store_->DeleteRange("key5", "key8").ok());
  Put("key5", 3007);
  EXPECT_EQ(Bytes(), kLimit - 1);
}

TEST_F(DataBoundTest, FiguresTellTheLastCountAndWhatWasWrittenSince) {
  const auto counted = [this] { return store_.Statistic("data_bytes_counted"); };
  const auto at_most = [this] { return store_.Statistic("data_bytes_at_most"); };
  EXPECT_EQ(at_most(), 0u) << "nothing was counted";
  Put("key", 1000);
  EXPECT_EQ(Bytes(), 1003u);
  EXPECT_EQ(counted(), 1003u);
  EXPECT_EQ(at_most(), 1003u);
  Put("key", 500);
  EXPECT_EQ(counted(), 1003u);
  EXPECT_GE(at_most(), 1503u);
  EXPECT_EQ(Bytes(), 503u);
  EXPECT_EQ(counted(), 503u);
  EXPECT_EQ(at_most(), 503u);
  store_->SetDataLimit(0);
  EXPECT_EQ(counted(), 0u) << "without a limit nobody counts";
  EXPECT_EQ(at_most(), 0u);
}

TEST_F(DataBoundTest, OverwritingIsNeverRefused) {
  for (int i = 0; i < 200; ++i) Put("key" + std::to_string(i % 4), 2000);
  EXPECT_EQ(Bytes(), 4 * 2004u);
}

TEST_F(DataBoundTest, ABatchCountsAsAWhole) {
  WriteBatch fits;
  fits.Put("a", std::string(6000, 'v'));
  fits.Put("a", std::string(7000, 'v'));
  fits.Put("b", std::string(2000, 'v'), 3);
  ASSERT_TRUE(store_->Write({}, &fits).ok()) << "only the last value of a key counts";
  EXPECT_EQ(Bytes(), 9002u);
  WriteBatch moves;
  moves.Delete("a");
  moves.Put("c", std::string(7500, 'v'), 5);
  ASSERT_TRUE(store_->Write({}, &moves).ok());
  WriteBatch full;
  full.Put("d", std::string(400, 'v'));
  full.Put("e", std::string(400, 'v'), 4);
  EXPECT_TRUE(IsStoreFull(store_->Write({}, &full).status()));
  EXPECT_EQ(Bytes(), 9502u);
}

TEST_F(DataBoundTest, WritersSideBySideDoNotPassTheLimit) {
  constexpr uint64_t kWide = 300'000;
  store_->SetDataLimit(kWide);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int key = 100; TryPut(std::to_string(i) + std::to_string(key), 996).ok(); ++key) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Bytes(), kWide);
}

TEST_F(DataBoundTest, OverALowerLimitItKnowsUntilSomethingIsWritten) {
  for (int i = 0; i < 9; ++i) Put("key" + std::to_string(i), 1000);
  store_->SetDataLimit(5000);
  EXPECT_GT(Bytes(), 5000u);
  EXPECT_EQ(Check(), DataCheck::kOver);
  EXPECT_TRUE(IsStoreFull(TryPut("y", 0)));
  Put("key3", 10);
  EXPECT_EQ(Check(), DataCheck::kMustCount);
  ASSERT_TRUE(store_->DeleteRange("key4", "key9").ok());
  EXPECT_LT(Bytes(), 5000u);
  EXPECT_EQ(Check(), DataCheck::kWithin);
}

TEST_F(DataBoundTest, AllNamespacesCountAndClonesAsWhatTheyShow) {
  Put("a", 999);
  Put("b", 999, 3);
  EXPECT_EQ(Bytes(), 2000u);
  WriteBatch clone;
  clone.CloneNamespace(kDefaultNamespace, {.id = 7});
  ASSERT_TRUE(store_->Write({}, &clone).ok());
  EXPECT_EQ(Check(), DataCheck::kMustCount);
  EXPECT_EQ(Bytes(), 3000u);
  store_.Reopen();
  store_->SetDataLimit(kLimit);
  EXPECT_EQ(Check(), DataCheck::kMustCount);
  EXPECT_EQ(Bytes(), 3000u);
  WriteBatch clear;
  clear.ClearNamespace(3);
  ASSERT_TRUE(store_->Write({}, &clear).ok());
  EXPECT_EQ(Bytes(), 2000u);
}

TEST_F(DataBoundTest, WhatHasExpiredDoesNotCount) {
  Put("a", 99);
  Put("b", 9000, kDefaultNamespace, ManualClock::kStart + 1000);
  EXPECT_EQ(Bytes(), 9101u);
  EXPECT_TRUE(IsStoreFull(TryPut("c", 9000)));
  clock_.Advance(1000);
  Put("c", 9000);
  EXPECT_EQ(Bytes(), 9101u);
}

}  // namespace
}  // namespace varve
