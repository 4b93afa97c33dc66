// Quotas of namespaces: exact, also among writers at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/namespace_calls.h"
#include "util/os/clock.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::Create;
using testing::Delete;
using testing::ManualClock;
using testing::Put;
using testing::Swap;
using testing::TestStore;

constexpr NamespaceId kLimitedNamespace = kFirstNamedNamespace;

// Each look at it is a millisecond later than the one before.
class TickingClock final : public Clock {
 public:
  uint64_t WallMillis() const override { return millis_.fetch_add(1); }
  uint64_t MonotonicNanos() const override { return 1; }
  void Advance(uint64_t millis) { millis_ += millis; }

 private:
  mutable std::atomic<uint64_t> millis_{1'700'000'000'000};
};

TEST(EngineQuotaTest, NoKeyMoreThanTheQuotaAllows) {
  TestStore store;
  ASSERT_TRUE(Create(store, kLimitedNamespace, "small", {.max_keys = 10}).ok());
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(Put(store, kLimitedNamespace, fmt::format("key{}", i), "value").ok()) << i;
  const absl::Status full = Put(store, kLimitedNamespace, "one more", "value");
  EXPECT_TRUE(IsNamespaceFull(full));
  EXPECT_EQ(full.message(),
            "namespace 'small' is full: it holds 10 of 10 keys that its quota allows; delete some "
            "or raise it");
  for (int i = 0; i < 30; ++i)
    ASSERT_TRUE(Put(store, kLimitedNamespace, fmt::format("key{}", i % 10), "longer value").ok())
        << i;
  ASSERT_TRUE(Put(store, 0, "elsewhere", "value").ok());
  std::string value;
  EXPECT_TRUE(store->Get({.space = kLimitedNamespace}, "key3", &value)->found);
  ASSERT_TRUE(Delete(store, kLimitedNamespace, "key3").ok());
  ASSERT_TRUE(Put(store, kLimitedNamespace, "one more", "value").ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, kLimitedNamespace, "key3", "value")));
  store.Reopen();
  EXPECT_TRUE(IsNamespaceFull(Put(store, kLimitedNamespace, "key3", "value")));
  WriteBatch batch;
  batch.UseNamespace(kLimitedNamespace);
  batch.Delete("one more");
  batch.Put("key3", "value");
  batch.Put("key3", "again");
  EXPECT_TRUE(store->Write({}, &batch).ok()) << "no more keys than before";
  EXPECT_EQ(store->Count({.space = kLimitedNamespace}, {}, {})->keys, 10u);
}

TEST(EngineQuotaTest, NoByteMoreThanTheQuotaAllows) {
  TestStore store;
  ASSERT_TRUE(Create(store, kLimitedNamespace, "small", {.max_bytes = 1000}).ok());
  ASSERT_TRUE(Put(store, kLimitedNamespace, "key1", std::string(496, 'v')).ok());
  ASSERT_TRUE(Put(store, kLimitedNamespace, "key2", std::string(495, 'v')).ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, kLimitedNamespace, "key3", "")));
  ASSERT_TRUE(Put(store, kLimitedNamespace, "k", "").ok()) << "exactly";
  EXPECT_TRUE(IsNamespaceFull(Put(store, kLimitedNamespace, "", "1")));
  ASSERT_TRUE(Put(store, kLimitedNamespace, "key1", std::string(495, 'v')).ok());
  ASSERT_TRUE(Put(store, kLimitedNamespace, "", "1").ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, kLimitedNamespace, "key2", std::string(496, 'v'))));
  EXPECT_EQ(store->Count({.space = kLimitedNamespace}, {}, {})->bytes, 1000u);
}

TEST(EngineQuotaTest, WhatIsThereWhenAQuotaComesStays) {
  TestStore store;
  ASSERT_TRUE(Create(store, 1).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Put(store, 1, fmt::format("key{}", i), "value").ok());
  WriteBatch batch;
  batch.AlterNamespace({.id = 1, .options = {.max_keys = 5}});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, 1, "one more", "value")));
  EXPECT_TRUE(Put(store, 1, "key1", "a longer value").ok()) << "no key more";
  batch.UseNamespace(1);
  batch.DeleteRange("key", "key6");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(Put(store, 1, "one more", "value").ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, 1, "two more", "value")));
  // A swap brings what it brings.
  ASSERT_TRUE(Swap(store, 0, 1).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Put(store, 1, fmt::format("key{}", i), "value").ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, 1, "key5", "value")));
  WriteBatch clear;
  clear.ClearNamespace(1);
  ASSERT_TRUE(store->Write({}, &clear).ok());
  EXPECT_TRUE(Put(store, 1, "key5", "value").ok());
}

TEST(EngineQuotaTest, AFullOneIsSaidWhileKeysGoOnExpiring) {
  constexpr uint64_t kKeys = 1000;
  TickingClock clock;
  EngineOptions options = testing::TestEngineOptions();
  options.clock = &clock;
  TestStore store(options);
  ASSERT_TRUE(Create(store, kLimitedNamespace, "small", {.max_keys = 1}).ok());
  ASSERT_TRUE(Put(store, kLimitedNamespace, "a", "v").ok());
  const uint64_t begin = store->NowMillis() + 10'000'000;
  WriteBatch batch;
  for (uint64_t i = 0; i < kKeys; ++i)
    batch.Put(fmt::format("k{}", i), "v", kDefaultNamespace, begin + i);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  clock.Advance(begin - store->NowMillis());
  EXPECT_TRUE(IsNamespaceFull(Put(store, kLimitedNamespace, "b", "v")));
  EXPECT_LT(store.Statistic("expired_keys"), kKeys / 2) << "without waiting for the last one";
}

// A write that replaces an expired key did not count as one more key, and a namespace above its
// quota could grow by it (crash_states_main --seed=4 --index=15335).
//
// What has expired may still be on disk; here it can't be removed, as there is an exclusive
// write.
TEST(EngineQuotaTest, WhoReplacesWhatHasExpiredAddsAKey) {
  ManualClock clock;
  EngineOptions options = testing::TestEngineOptions();
  options.clock = &clock;
  TestStore store(options);
  ASSERT_TRUE(Create(store, kLimitedNamespace, "small").ok());
  for (const std::string key : {"a", "b", "c"})
    ASSERT_TRUE(Put(store, kLimitedNamespace, key, "v").ok());
  WriteBatch batch;
  batch.Put("short", "v", kLimitedNamespace, ManualClock::kStart + 10);
  batch.AlterNamespace({.id = kLimitedNamespace, .name = "small", .options = {.max_keys = 2}});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  const std::unique_ptr<ExclusiveWrite> exclusive = store->BeginExclusiveWrite();
  clock.Advance(10);
  const auto replace = [&](const std::string& key) {
    batch.Clear();
    batch.Put(key, "new", kLimitedNamespace);
    return store->Write({.exclusive_write = exclusive.get()}, &batch).status();
  };
  EXPECT_TRUE(IsNamespaceFull(replace("short")));
  EXPECT_TRUE(replace("a").ok());
}

TEST(EngineQuotaTest, HoldsAmongWritersAtTheSameTime) {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  TestStore store(options);
  constexpr uint64_t kMost = 200;
  ASSERT_TRUE(Create(store, kLimitedNamespace, "small", {.max_keys = kMost}).ok());
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 2000; ++i) {
        WriteBatch batch;
        batch.UseNamespace(random() % 8 == 0 ? 0 : kLimitedNamespace);
        for (unsigned keys = 1 + random() % 3; keys > 0; --keys) {
          const std::string key = fmt::format("key{}", random() % 400);
          random() % 3 == 0 ? batch.Delete(key) : batch.Put(key, "value");
        }
        const absl::Status status = store->Write({}, &batch).status();
        EXPECT_TRUE(status.ok() || IsNamespaceFull(status)) << status;
        if (i % 50 == 0) {
          EXPECT_LE(store->Count({.space = kLimitedNamespace}, {}, {})->keys, kMost);
        }
        if (seed == 0 && i % 300 == 0) {
          EXPECT_TRUE(store->Flush().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 400; ++i)
    Put(store, kLimitedNamespace, fmt::format("key{}", i), "value").IgnoreError();
  EXPECT_EQ(store->Count({.space = kLimitedNamespace}, {}, {})->keys, kMost) << "and not one less";
}

}  // namespace
}  // namespace varve
