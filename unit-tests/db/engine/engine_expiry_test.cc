// Keys that expire: hidden at once and everywhere, never back, and their space given back.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "util/base/status.h"
#include "varve/transaction.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::ManualClock;
using testing::SimulatedFileSystem;
using testing::TestEngineOptions;
using testing::TestStore;

constexpr uint64_t kStart = ManualClock::kStart;
constexpr uint64_t kDay = 86'400'000;

class EngineExpiryTest : public ::testing::Test {
 protected:
  EngineOptions Options() {
    EngineOptions options = TestEngineOptions();
    options.clock = &clock_;
    return options;
  }

  static absl::Status Put(TestStore& store, std::string_view key, std::string_view value,
                          uint64_t expiry_ms) {
    WriteBatch batch;
    batch.Put(key, value, kDefaultNamespace, expiry_ms);
    return store->Write({}, &batch).status();
  }
  static uint64_t Count(TestStore& store, std::string_view lower = {},
                        std::string_view upper = {}) {
    const absl::StatusOr<CountResult> count = store->Count({}, lower, upper);
    EXPECT_TRUE(count.ok()) << count.status();
    return count.ok() ? count->keys : 0;
  }

  ManualClock clock_;
};

TEST_F(EngineExpiryTest, WhatHasExpiredIsHiddenToTheMillisecondEverywhere) {
  TestStore store(Options());
  ASSERT_TRUE(store->Put("a", "stays").ok());
  ASSERT_TRUE(Put(store, "b", "goes", kStart + 1000).ok());
  ASSERT_TRUE(store->Put("c", "stays").ok());
  for (const bool in_segment : {false, true}) {
    if (in_segment) ASSERT_TRUE(store->Flush().ok());
    EXPECT_EQ(store.Get("b"), "goes");
    EXPECT_EQ(Count(store), 3u);
    EXPECT_EQ(Count(store, "b", "c"), 1u);
    EXPECT_EQ(store.Scan(), "a=stays b=goes c=stays ");
  }
  std::string value;
  const auto alive = store->Get({}, "b", &value);
  ASSERT_TRUE(alive.ok());
  EXPECT_EQ(alive->expiry_ms, kStart + 1000);
  EXPECT_FALSE(alive->expired);

  clock_.Advance(999);
  EXPECT_EQ(store.Get("b"), "goes");
  clock_.Advance(1);
  const auto expired = store->Get({}, "b", &value);
  ASSERT_TRUE(expired.ok());
  EXPECT_FALSE(expired->found);
  EXPECT_EQ(store.Scan(), "a=stays c=stays ");
  EXPECT_EQ(store.Scan({}, {}, /*reverse=*/true), "c=stays a=stays ");
  EXPECT_EQ(Count(store, "a", "d"), 2u);
  EXPECT_EQ(Count(store), 2u);
  MultiGetResult results[2];
  const std::string_view keys[] = {"b", "c"};
  ASSERT_TRUE(store->MultiGet({}, keys, results).ok());
  EXPECT_FALSE(results[0].result.found);
  EXPECT_TRUE(results[1].result.found);
  ASSERT_TRUE(Put(store, "b", "again", 0).ok());
  EXPECT_EQ(store.Get("b"), "again");
  clock_.Advance(kDay);
  EXPECT_EQ(store.Get("b"), "again") << "the entry of its earlier life is stale";
  EXPECT_EQ(Count(store), 3u);
}

TEST_F(EngineExpiryTest, AReaderThatAsksForItFindsWhatNobodyHasRemoved) {
  TestStore store(Options());
  store->PauseExpiry(std::chrono::hours(1));
  ASSERT_TRUE(Put(store, "a", "old", kStart + 10).ok());
  ASSERT_TRUE(Put(store, "b", "removed", kStart + 10).ok());
  clock_.Advance(1000);
  ASSERT_TRUE(store->Delete("b").ok());
  ReadOptions options;
  options.expired_too = true;
  for (const bool in_segment : {false, true}) {
    if (in_segment) ASSERT_TRUE(store->Flush().ok());
    EXPECT_EQ(store.Get("a"), "(missing)");
    std::string value;
    const absl::StatusOr<ReadResult> read = store->Get(options, "a", &value);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->found);
    EXPECT_FALSE(read->expired);
    EXPECT_EQ(read->expiry_ms, kStart + 10);
    EXPECT_EQ(value, "old");
    MultiGetResult results[2];
    const std::string_view keys[] = {"a", "b"};
    ASSERT_TRUE(store->MultiGet(options, keys, results).ok());
    EXPECT_EQ(results[0].value, "old");
    EXPECT_FALSE(results[1].result.found);
  }
  Transaction transaction(&*store, {});
  WriteBatch batch;
  batch.Put("own", "v", kDefaultNamespace, kStart + 20);
  ASSERT_TRUE(transaction.contents()->Submit({}, &batch).ok());
  std::string value;
  for (const char* key : {"a", "own"}) {
    EXPECT_TRUE(transaction.Get(options, key, &value)->found) << key;
    EXPECT_FALSE(transaction.Get({}, key, &value)->found) << key;
  }
}

TEST_F(EngineExpiryTest, ASnapshotShowsItsInstant) {
  TestStore store(Options());
  ASSERT_TRUE(Put(store, "k", "v", kStart + 10).ok());
  const auto before = store->GetSnapshot();
  clock_.Advance(10);
  const auto after = store->GetSnapshot();
  EXPECT_EQ(Count(store), 0u);
  EXPECT_EQ(store.Get("k", before.get()), "v");
  EXPECT_EQ(store.Scan({}, {}, false, before.get()), "k=v ");
  EXPECT_EQ(store.Get("k", after.get()), "(missing)");
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Get("k", before.get()), "v");
}

TEST_F(EngineExpiryTest, AClockThatIsSetBackBringsNothingBack) {
  TestStore store(Options());
  ASSERT_TRUE(Put(store, "seen", "v", kStart + 1000).ok());
  ASSERT_TRUE(Put(store, "unseen", "v", kStart + kDay).ok());
  clock_.Advance(1000);
  EXPECT_EQ(store.Get("seen"), "(missing)");
  for (const bool reopened : {false, true}) {
    if (reopened) store.Reopen();
    clock_.SetWall(kStart - 30 * kDay);
    EXPECT_EQ(store.Get("seen"), "(missing)");
    EXPECT_EQ(store.Scan(), "unseen=v ");
    EXPECT_EQ(store->NowMillis(), kStart + 1000) << "it stands at the mark";
  }
  ASSERT_TRUE(Put(store, "later", "v", store->NowMillis() + 5000).ok());
  clock_.Advance(4999);
  EXPECT_EQ(store.Get("later"), "v");
  clock_.Advance(1);
  EXPECT_EQ(store.Get("later"), "(missing)") << "time goes on from the mark";
  EXPECT_EQ(store.Get("unseen"), "v");
}

TEST_F(EngineExpiryTest, AClockThatWasFarAheadKeepsWhatItShowed) {
  TestStore store(Options());
  ASSERT_TRUE(Put(store, "k", "v", kStart + kDay).ok());
  clock_.SetWall(kStart + 30 * kDay);
  EXPECT_EQ(store.Scan(), "");
  clock_.SetWall(kStart);
  EXPECT_EQ(store.Get("k"), "(missing)");
  store.Reopen();
  EXPECT_EQ(store.Get("k"), "(missing)");
}

TEST_F(EngineExpiryTest, WhatNobodyHasSeenExpireMayComeBackWithTheClock) {
  TestStore store(Options());
  ASSERT_TRUE(Put(store, "k", "v", kStart + 10 * kDay).ok());
  clock_.SetWall(kStart + kDay);
  EXPECT_EQ(store.Get("k"), "v");
  EXPECT_EQ(store.Statistic("clock_marks"), 0u) << "readers of what is alive leave no marks";
}

TEST_F(EngineExpiryTest, PowerCutsBringNothingBackThatWasSeenExpired) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SimulatedFileSystem disk;
    EngineOptions options = Options();
    options.file_system = &disk;
    ASSERT_TRUE(disk.CreateDirectory("/disk").ok());
    auto opened = StorageEngine::Open("/disk/store", options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    std::unique_ptr<StorageEngine> store = *std::move(opened);
    const uint64_t begin = store->NowMillis();
    std::set<std::string> seen;
    for (int i = 0; i < 20; ++i) {
      WriteBatch batch;
      batch.Put(fmt::format("k{}", i), "v", kDefaultNamespace, begin + static_cast<uint64_t>(i));
      ASSERT_TRUE(store->Write({}, &batch).ok());
    }
    disk.StopAfter(seed);
    for (int i = 0; i < 20; ++i) {
      clock_.Advance(1);
      std::string value;
      const std::string key = fmt::format("k{}", i);
      const auto read = store->Get({}, key, &value);
      // A log that has failed takes no mark, and what expires then is hidden all the same.
      if (read.ok() && !read->found && store->log_status().ok()) seen.insert(key);
      if (i == 10) store->Flush().IgnoreError();
    }
    disk.StopHere();
    store.reset();
    disk.RestorePower(seed);
    clock_.SetWall(begin);
    opened = StorageEngine::Open("/disk/store", options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    for (const std::string& key : seen) {
      std::string value;
      const auto read = (*opened)->Get({}, key, &value);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_FALSE(read->found) << key << " of seed " << seed;
    }
    clock_.SetWall(begin + kDay);
  }
}

TEST_F(EngineExpiryTest, AFailedLogKeepsNobodyFromReadingWhatHasExpired) {
  FaultFileSystem file_system;
  EngineOptions options = Options();
  options.file_system = &file_system;
  TestStore store(options);
  ASSERT_TRUE(Put(store, "first", "v", kStart + 1000).ok());
  ASSERT_TRUE(Put(store, "second", "v", kStart + 2000).ok());
  ASSERT_TRUE(store->Put("stays", "v").ok());
  file_system.Fail(FileOperation::kSync, 1, absl::InternalError("the device says no"),
                   FaultFileSystem::kUnlimited, ".log");
  clock_.Advance(1000);
  EXPECT_EQ(store.Get("first"), "(missing)") << "though its mark can't be made durable";
  EXPECT_FALSE(store->log_status().ok());
  EXPECT_EQ(store.Get("first"), "(missing)");
  EXPECT_EQ(store.Scan(), "second=v stays=v ");
  clock_.Advance(1000);
  EXPECT_EQ(store.Get("second"), "(missing)");
  clock_.SetWall(kStart);
  EXPECT_EQ(store.Scan(), "stays=v ") << "what was seen holds until the restart";
  EXPECT_FALSE(store->Close().ok());
}

TEST_F(EngineExpiryTest, SweepingGivesTheSpaceBack) {
  TestStore store(Options());
  const std::string value(1000, 'v');
  for (int i = 0; i < 3000; ++i) {
    WriteBatch batch;
    batch.Put(fmt::format("k{:05}", i), value, kDefaultNamespace,
              i % 3 == 0 ? 0 : kStart + 1000 + i % 50);
    ASSERT_TRUE(store->Submit({}, &batch).ok());
  }
  ASSERT_TRUE(store->Sync().ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(Count(store), 3000u);
  clock_.Advance(1200);
  EXPECT_TRUE(Eventually([&] { return store.Statistic("expired_keys") == 2000; }))
      << "without anybody's asking";
  EXPECT_EQ(Count(store), 1000u);
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(Count(store), 1000u);
  store.Reopen();
  EXPECT_EQ(Count(store), 1000u);
}

TEST_F(EngineExpiryTest, ARestartGoesOnWithWhatIsDue) {
  TestStore store(Options());
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(Put(store, fmt::format("k{}", i), "v", kStart + 1000).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(Put(store, "buffered", "v", kStart + 1000).ok());
  store.Close();
  clock_.Advance(5000);
  store.Open();
  EXPECT_TRUE(Eventually([&] { return store.Statistic("expired_keys") == 101; }));
  EXPECT_EQ(Count(store), 0u);
}

// While a count swept, nothing seemed due; the expiry thread, if it looked just then, slept until
// the next key with an expiry was written.
TEST_F(EngineExpiryTest, WhoCountsDoesNotPutTheSweepToSleep) {
  TestStore store(Options());
  WriteBatch batch;
  for (int i = 0; i < 20'000; ++i)
    batch.Put(fmt::format("key{}", i), "value", kDefaultNamespace, kStart + 990);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(Put(store, "later", "value", kStart + 1020).ok());
  // All have expired but one, and the thread looks every few milliseconds whether an entry is due:
  // also while this counts, which removes them.
  clock_.Advance(990);
  absl::SleepFor(absl::Milliseconds(1200));
  EXPECT_EQ(Count(store), 1u);
  absl::SleepFor(absl::Milliseconds(100));
  clock_.Advance(100);
  EXPECT_TRUE(Eventually([&] { return store.Statistic("expired_keys") == 20'001; }));
}

TEST_F(EngineExpiryTest, EmptyingANamespaceTakesTheEntriesAlong) {
  TestStore store(Options());
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(Put(store, fmt::format("k{}", i), "v", kStart + 1000).ok());
  WriteBatch clear;
  clear.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &clear).ok());
  ASSERT_TRUE(Put(store, "k1", "new", kStart + kDay).ok());
  clock_.Advance(5000);
  EXPECT_EQ(Count(store), 1u);
  EXPECT_EQ(store.Get("k1"), "new");
  EXPECT_EQ(store.Statistic("expired_keys"), 0u);
}

TEST_F(EngineExpiryTest, RandomWorkAgainstAModel) {
  TestStore store(Options());
  std::mt19937_64 random(7);
  std::map<std::string, std::pair<std::string, uint64_t>> model;
  for (int i = 0; i < 4000; ++i) {
    const std::string key = fmt::format("k{:02}", random() % 60);
    const uint64_t now = store->NowMillis();
    std::erase_if(model, [&](const auto& each) {
      return each.second.second != 0 && each.second.second <= now;
    });
    switch (random() % 8) {
      case 0:
      case 1:
      case 2: {
        const uint64_t expiry =
            random() % 3 == 0 ? 0 : now + 1 + (random() % 5000 >> random() % 12);
        const std::string value = fmt::format("v{}", i);
        ASSERT_TRUE(Put(store, key, value, expiry).ok());
        model[key] = {value, expiry};
        break;
      }
      case 3:
        ASSERT_TRUE(store->Delete(key).ok());
        model.erase(key);
        break;
      case 4:
        clock_.Advance(random() % 300);
        break;
      case 5:
        ASSERT_EQ(store.Get(key), model.contains(key) ? model[key].first : "(missing)")
            << "step " << i;
        break;
      case 6:
        ASSERT_EQ(Count(store), model.size()) << "step " << i;
        break;
      default: {
        std::string expected;
        for (const auto& [each, value] : model) expected += each + "=" + value.first + " ";
        ASSERT_EQ(store.Scan(), expected) << "step " << i;
        if (random() % 40 == 0) ASSERT_TRUE(store->Flush().ok());
        if (random() % 80 == 0) ASSERT_TRUE(store->Compact({}, {}).ok());
        if (random() % 80 == 0) store.Reopen();
      }
    }
  }
}

// What expires is counted, wherever it lies and whatever becomes of it.
TEST_F(EngineExpiryTest, KeysThatExpireAreCounted) {
  TestStore store(Options());
  const auto expect = [&](uint64_t keys, uint64_t expiring, uint64_t mean, NamespaceId space = 0) {
    const absl::StatusOr<CountResult> count = store->Count({.space = space}, {}, {});
    ASSERT_TRUE(count.ok()) << count.status();
    EXPECT_EQ(count->keys, keys);
    EXPECT_EQ(count->expiring, expiring);
    EXPECT_EQ(count->mean_expiry_ms, mean);
  };
  ASSERT_TRUE(store->Put("a", "stays").ok());
  ASSERT_TRUE(Put(store, "b", "1", kStart + kDay).ok());
  ASSERT_TRUE(Put(store, "c", "1", kStart + 3 * kDay).ok());
  expect(3, 2, kStart + 2 * kDay);
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  expect(3, 2, kStart + 2 * kDay);
  ASSERT_TRUE(Put(store, "c", "1", kStart + 5 * kDay).ok());  // overwritten in another layer
  expect(3, 2, kStart + 3 * kDay);
  ASSERT_TRUE(store->Put("c", "stays").ok());
  expect(3, 1, kStart + kDay);
  WriteBatch clone;
  clone.CloneNamespace(kDefaultNamespace, {.id = 7});
  ASSERT_TRUE(store->Write({}, &clone).ok());
  expect(3, 1, kStart + kDay, 7);
  ASSERT_TRUE(Put(store, "d", "1", kStart + kDay).ok());
  expect(4, 2, kStart + kDay);
  expect(3, 1, kStart + kDay, 7);
  const std::vector<NamespaceEstimate> estimates = store->Observe().namespaces;
  ASSERT_EQ(estimates.size(), 2u);
  EXPECT_GT(estimates[0].expiring, 0u);
  EXPECT_LE(estimates[0].expiring, estimates[0].keys);
  clock_.Advance(kDay);
  expect(2, 0, kNoExpiry);
  expect(2, 0, kNoExpiry, 7);
  ASSERT_TRUE(Put(store, "e", "1", kStart + 9 * kDay).ok());
  expect(3, 1, kStart + 9 * kDay);
  WriteBatch clear;
  clear.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &clear).ok());
  expect(0, 0, kNoExpiry);
  store.Reopen();
  expect(0, 0, kNoExpiry);
  expect(2, 0, kNoExpiry, 7);
}

}  // namespace
}  // namespace varve
