// Where keys that expire, namespaces and transactions meet.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/transaction.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::ManualClock;
using testing::TestEngineOptions;
using testing::TestStore;

constexpr uint64_t kClockStart = ManualClock::kStart;
constexpr NamespaceId kOther = 7;

class ExpiryInNamespacesTest : public ::testing::Test {
 protected:
  ExpiryInNamespacesTest() { Create({.id = kOther}); }

  EngineOptions Options() {
    EngineOptions options = TestEngineOptions();
    options.clock = &clock_;
    return options;
  }
  void Create(const NamespaceDescription& space) {
    WriteBatch batch;
    batch.CreateNamespace(space);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
  }
  absl::Status Put(std::string_view key, NamespaceId space, uint64_t expiry_ms = kNoExpiry) {
    WriteBatch batch;
    batch.Put(key, "value", space, expiry_ms);
    return store_->Write({}, &batch).status();
  }
  bool Has(std::string_view key, NamespaceId space) {
    std::string value;
    const absl::StatusOr<ReadResult> read = store_->Get({.space = space}, key, &value);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() && read->found;
  }
  uint64_t Count(NamespaceId space) {
    const absl::StatusOr<CountResult> count = store_->Count({.space = space}, {}, {});
    EXPECT_TRUE(count.ok()) << count.status();
    return count.ok() ? count->keys : 0;
  }

  ManualClock clock_;
  TestStore store_{Options()};
};

TEST_F(ExpiryInNamespacesTest, EachNamespaceHasKeysThatExpire) {
  ASSERT_TRUE(Put("a", kDefaultNamespace, kClockStart + 1000).ok());
  ASSERT_TRUE(Put("a", kOther, kClockStart + 2000).ok());
  ASSERT_TRUE(Put("b", kOther).ok());
  ASSERT_TRUE(store_->Flush().ok());
  clock_.Advance(1000);
  EXPECT_FALSE(Has("a", kDefaultNamespace));
  EXPECT_TRUE(Has("a", kOther));
  EXPECT_EQ(Count(kDefaultNamespace), 0u);
  EXPECT_EQ(Count(kOther), 2u);
  clock_.Advance(1000);
  EXPECT_FALSE(Has("a", kOther));
  EXPECT_EQ(Count(kOther), 1u);
  EXPECT_EQ(store_.Statistic("expired_keys"), 2u);
  const absl::StatusOr<NamespaceList> list = store_->Namespaces();
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->namespaces.size(), 2u) << "the index is no namespace";
}

TEST_F(ExpiryInNamespacesTest, ASwapTakesExpiriesAlong) {
  ASSERT_TRUE(Put("a", kDefaultNamespace, kClockStart + 1000).ok());
  ASSERT_TRUE(Put("a", kOther).ok());
  WriteBatch swap;
  swap.SwapNamespaces(kDefaultNamespace, kOther);
  ASSERT_TRUE(store_->Write({}, &swap).ok());
  clock_.Advance(1000);
  EXPECT_TRUE(Has("a", kDefaultNamespace));
  EXPECT_FALSE(Has("a", kOther));
  EXPECT_EQ(Count(kDefaultNamespace), 1u);
  EXPECT_EQ(Count(kOther), 0u);
  store_.Reopen();
  EXPECT_TRUE(Has("a", kDefaultNamespace));
  EXPECT_FALSE(Has("a", kOther));
}

TEST_F(ExpiryInNamespacesTest, KeysOfADroppedNamespaceAreNobodys) {
  ASSERT_TRUE(Put("a", kOther, kClockStart + 1000).ok());
  WriteBatch drop;
  drop.DropNamespace(kOther);
  ASSERT_TRUE(store_->Write({}, &drop).ok());
  Create({.id = kOther});
  ASSERT_TRUE(Put("a", kOther).ok());
  clock_.Advance(5000);
  EXPECT_EQ(Count(kOther), 1u);
  EXPECT_TRUE(Has("a", kOther));
  EXPECT_EQ(store_.Statistic("expired_keys"), 0u);
}

TEST_F(ExpiryInNamespacesTest, WhatHasExpiredMakesRoomInAQuota) {
  NamespaceDescription space{.id = kOther};
  space.options.max_keys = 2;
  WriteBatch alter;
  alter.AlterNamespace(space);
  ASSERT_TRUE(store_->Write({}, &alter).ok());
  ASSERT_TRUE(Put("a", kOther, kClockStart + 1000).ok());
  ASSERT_TRUE(Put("b", kOther).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Put("c", kOther)));
  clock_.Advance(1000);
  EXPECT_TRUE(Put("c", kOther).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Put("d", kOther)));
}

TEST_F(ExpiryInNamespacesTest, WhoAsksWritesWithTheUsualExpiry) {
  EXPECT_EQ(store_->UsualExpiry(kOther), kNoExpiry);
  NamespaceDescription space{.id = kOther};
  space.options.default_expiry_ms = 1000;
  WriteBatch alter;
  alter.AlterNamespace(space);
  ASSERT_TRUE(store_->Write({}, &alter).ok());
  store_.Reopen();
  EXPECT_EQ(store_->UsualExpiry(kOther), kClockStart + 1000);
  EXPECT_EQ(store_->UsualExpiry(kDefaultNamespace), kNoExpiry);
  WriteBatch batch;
  batch.UseNamespace(kOther, store_->UsualExpiry(kOther));
  batch.Put("a", "goes");
  batch.Put("b", "stays", kSelectedNamespace, kNoExpiry);
  ASSERT_TRUE(store_->Write({}, &batch).ok());
  clock_.Advance(1000);
  EXPECT_FALSE(Has("a", kOther));
  EXPECT_TRUE(Has("b", kOther));
}

TEST_F(ExpiryInNamespacesTest, ATransactionSeesTheClockOfItsSnapshot) {
  ASSERT_TRUE(Put("a", kDefaultNamespace, kClockStart + 1000).ok());
  ASSERT_TRUE(Put("gone", kDefaultNamespace, kClockStart - 1000).ok());
  Transaction transaction(&*store_);
  clock_.Advance(5000);
  std::string value;
  absl::StatusOr<ReadResult> read = transaction.Get({}, "a", &value);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->found);
  EXPECT_EQ(read->expiry_ms, kClockStart + 1000);
  read = transaction.Get({}, "gone", &value);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->found);
  transaction.Put("b", "own", kDefaultNamespace, kClockStart + 2000);
  transaction.Put("c", "past", kDefaultNamespace, kClockStart - 1);
  read = transaction.Get({}, "b", &value);
  EXPECT_TRUE(read->found);
  EXPECT_EQ(read->expiry_ms, kClockStart + 2000);
  read = transaction.Get({}, "c", &value);
  EXPECT_TRUE(!read->found && read->expired);
  {
    const std::unique_ptr<Iterator> iterator = transaction.NewIterator({}, {}, {}, nullptr);
    iterator->SeekToFirst();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->expiry_ms(), kClockStart + 1000);
    iterator->Next();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "b");
    EXPECT_EQ(iterator->expiry_ms(), kClockStart + 2000);
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
    iterator->SeekToLast();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "b");
  }
  EXPECT_FALSE(Has("a", kDefaultNamespace)) << "for others its time is over";
}

TEST_F(ExpiryInNamespacesTest, CountsOfTransactionsLeaveOutWhatHasExpired) {
  ASSERT_TRUE(Put("a", kDefaultNamespace, kClockStart + 1000).ok());
  ASSERT_TRUE(Put("b", kDefaultNamespace).ok());
  clock_.Advance(1000);
  uint64_t keys = 0;
  const absl::StatusOr<CommitResult> committed =
      RunTransaction(&*store_, {}, [&](Transaction* transaction) {
        const absl::StatusOr<CountResult> count = transaction->Count({}, {}, {});
        if (!count.ok()) return count.status();
        keys = count->keys;
        transaction->Put("c", "value");
        return absl::OkStatus();
      });
  EXPECT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(keys, 1u);
}

TEST_F(ExpiryInNamespacesTest, AnExclusiveWriterReadsAndCountsWhatExpires) {
  ASSERT_TRUE(Put("a", kOther, kClockStart + 1000).ok());
  NamespaceDescription space{.id = kOther};
  space.options.max_keys = 2;
  WriteBatch alter;
  alter.AlterNamespace(space);
  ASSERT_TRUE(store_->Write({}, &alter).ok());
  clock_.Advance(1000);
  {
    const std::unique_ptr<ExclusiveWrite> exclusive = store_->BeginExclusiveWrite();
    Transaction transaction(&*store_, {.write = {.exclusive_write = exclusive.get()}});
    std::string value;
    absl::StatusOr<ReadResult> read = transaction.Get({.space = kOther}, "a", &value);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(read->found);
    const absl::StatusOr<CountResult> count = transaction.Count({.space = kOther}, {}, {});
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->keys, 0u);
    EXPECT_EQ(Count(kOther), 0u) << "others may count, too";
    transaction.Put("b", "value", kOther);
    const absl::StatusOr<CommitResult> committed = transaction.Commit();
    EXPECT_TRUE(committed.ok()) << committed.status();
  }
  EXPECT_TRUE(Has("b", kOther));
  clock_.Advance(100);  // entries of the index are due a little later
  EXPECT_TRUE(Eventually([this] { return store_.Statistic("expired_keys") == 1; }));
}

TEST_F(ExpiryInNamespacesTest, TransactionsCreateAndSwapNamespaces) {
  ASSERT_TRUE(Put("a", kDefaultNamespace).ok());
  Transaction transaction(&*store_);
  ASSERT_TRUE(transaction.CreateNamespace({.id = 3}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(transaction.CreateNamespace({.id = 3})));
  transaction.Put("new", "value", 3);
  transaction.SwapNamespaces(kDefaultNamespace, 3);
  std::string value;
  EXPECT_TRUE(transaction.Get({.space = 3}, "a", &value)->found);
  EXPECT_TRUE(transaction.Get({}, "new", &value)->found);
  EXPECT_FALSE(transaction.Get({}, "a", &value)->found);
  transaction.Put("later", "value");
  transaction.SwapNamespaces(kOther, 3);
  EXPECT_TRUE(transaction.Get({.space = kOther}, "a", &value)->found);
  EXPECT_EQ(transaction.Count({}, {}, {})->keys, 2u);
  const absl::StatusOr<CommitResult> committed = transaction.Commit();
  ASSERT_TRUE(committed.ok()) << committed.status();
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(Has("new", kDefaultNamespace) && Has("later", kDefaultNamespace) &&
                Has("a", kOther));
    EXPECT_EQ(Count(kDefaultNamespace), 2u);
    EXPECT_EQ(Count(3), 0u);
    store_.Reopen();
  }
  Transaction late(&*store_);
  Create({.id = 4});
  ASSERT_TRUE(late.CreateNamespace({.id = 4}).ok());
  EXPECT_TRUE(absl::IsAborted(late.Commit().status()));
}

}  // namespace
}  // namespace varve
