// The number of keys, and of those that expire: exact whatever was written, merged or lost, and
// what asking for it costs.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/time/clock.h"
#include "fmt/format.h"
#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/test_store.h"
#include "varve/compaction_filter.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::TestStore;

std::string Key(uint64_t i) { return fmt::format("key{:06}", i); }

constexpr uint64_t kFarAway = uint64_t{1} << 42;  // milliseconds since the epoch: the year 2109

EngineOptions CountOptions() {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  options.write_buffer_size = 64 << 10;
  options.segment_size = 128 << 10;
  options.runs_per_level = 3;
  options.block_cache_size = 0;
  return options;
}

// Nothing is merged unless the test asks for it: a merge reads, beside what is counted.
EngineOptions WithoutMerges() {
  EngineOptions options = CountOptions();
  options.runs_per_level = 1000;
  return options;
}

uint64_t Keys(TestStore& store) { return store->Count({}, {}, {}).value().keys; }

uint64_t Reads(TestStore& store) {
  return store.Statistic("segment_lookups") + store.Statistic("record_reads") +
         store.Statistic("table_page_reads") + store.Statistic("scan_reads");
}

void Fill(TestStore& store, uint64_t begin, uint64_t end, uint64_t step = 1) {
  for (uint64_t i = begin; i < end; i += step)
    ASSERT_TRUE(store->Put(Key(i), std::string(100, 'v')).ok());
}

// Layers of every kind over a large last run, so that they are counted by lookups, side by side,
// together, and by merges.
class CountModelTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  struct Kept {
    size_t size = 0;
    uint64_t expiry_ms = kNoExpiry;
  };
  using Model = std::map<std::string, Kept>;

  static void ExpectCount(TestStore& store, const Model& model) {
    uint64_t bytes = 0, expiring = 0, sum = 0;
    for (const auto& [key, kept] : model) {
      bytes += key.size() + kept.size;
      expiring += kept.expiry_ms == kNoExpiry ? 0 : 1;
      sum += kept.expiry_ms;
    }
    const absl::StatusOr<CountResult> count = store->Count({}, {}, {});
    ASSERT_TRUE(count.ok()) << count.status();
    ASSERT_EQ(count->keys, model.size());
    ASSERT_EQ(count->bytes, bytes);
    ASSERT_EQ(count->expiring, expiring);
    ASSERT_EQ(count->mean_expiry_ms, expiring == 0 ? kNoExpiry : sum / expiring);
  }
};

TEST_P(CountModelTest, IsThatOfAMap) {
  std::mt19937_64 random(GetParam());
  EngineOptions options = CountOptions();
  if (GetParam() % 2 == 0) options.write_buffer_size = 16 << 10;
  TestStore store(options);
  Model model;
  std::vector<std::shared_ptr<const Snapshot>> snapshots;
  constexpr uint64_t kKeys = 12000;
  for (int step = 0; step < 400; ++step) {
    const uint64_t dice = random() % 100;
    const std::string begin = Key(random() % kKeys);
    if (dice < 70) {
      const uint64_t size = dice < 3 ? 4000 : 1 + random() % 60, first = random() % kKeys;
      WriteBatch batch;
      for (uint64_t i = 0; i < size; ++i) {
        const std::string key = Key(dice < 35 ? random() % kKeys : (first + i) % kKeys);
        if (random() % 3 == 0) {
          batch.Delete(key);
          model.erase(key);
        } else {
          const std::string value(random() % 90, 'v');
          const uint64_t expiry_ms = random() % 3 == 0 ? kFarAway + random() % kFarAway : kNoExpiry;
          batch.Put(key, value, kDefaultNamespace, expiry_ms);
          model[key] = {value.size(), expiry_ms};
        }
      }
      ASSERT_TRUE(store->Write({}, &batch).ok());
    } else if (dice < 76) {
      const std::string end = Key(random() % kKeys);
      if (begin < end) {
        ASSERT_TRUE(store->DeleteRange(begin, end).ok());
        model.erase(model.lower_bound(begin), model.lower_bound(end));
      }
    } else if (dice < 80) {
      ASSERT_TRUE(store->Flush().ok());
    } else if (dice < 82) {
      ASSERT_TRUE(
          store->Compact(random() % 2 == 0 ? "" : begin, random() % 2 == 0 ? "" : begin + "~")
              .ok());
    } else if (dice < 84) {
      snapshots.push_back(store->GetSnapshot());
      if (snapshots.size() > 3) snapshots.erase(snapshots.begin());
    } else if (dice < 86) {
      snapshots.clear();
      store.Reopen();
    } else if (dice == 86 && random() % 4 == 0) {
      WriteBatch batch;
      batch.ClearNamespace();
      ASSERT_TRUE(store->Write({}, &batch).ok());
      model.clear();
    } else {
      SCOPED_TRACE(step);
      ASSERT_NO_FATAL_FAILURE(ExpectCount(store, model));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CountModelTest, ::testing::Range<uint64_t>(1, 9));

TEST(EngineCountTest, AskingAgainReadsNothing) {
  TestStore store(WithoutMerges());
  Fill(store, 0, 5000);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  Fill(store, 0, 6000, 7);
  ASSERT_TRUE(store->Flush().ok());
  Fill(store, 1, 7000, 70);
  const uint64_t before = Reads(store);
  EXPECT_EQ(Keys(store), 5000u + 143 + 28);
  const uint64_t asked = Reads(store);
  EXPECT_GT(asked, before) << "keys were overwritten";
  EXPECT_EQ(Keys(store), 5000u + 143 + 28);
  EXPECT_EQ(Reads(store), asked);
}

TEST(EngineCountTest, WhatWasCountedIsRemembered) {
  TestStore store(WithoutMerges());
  Fill(store, 0, 5000);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  Fill(store, 0, 6000, 70);
  EXPECT_EQ(Keys(store), 5014u);
  ASSERT_TRUE(store->Flush().ok());
  const uint64_t asked = Reads(store);
  EXPECT_EQ(Keys(store), 5014u) << "through a flush";
  EXPECT_EQ(Reads(store), asked);
  store.Reopen();
  const uint64_t opened = Reads(store);
  EXPECT_EQ(Keys(store), 5014u) << "through a restart";
  EXPECT_EQ(Reads(store), opened);
}

TEST(EngineCountTest, MergesToTheBottomAndNewKeysAreCountedByThemselves) {
  TestStore store(WithoutMerges());
  Fill(store, 0, 5000);
  Fill(store, 5000, 9000);
  Fill(store, 0, 5000, 3);
  ASSERT_TRUE(store->DeleteRange(Key(100), Key(200)).ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  const uint64_t before = Reads(store);
  EXPECT_EQ(Keys(store), 8900u);
  Fill(store, 20000, 21000);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(Keys(store), 9900u);
  EXPECT_EQ(Reads(store), before);
}

TEST(EngineCountTest, TheBackgroundCountsAtRest) {
  TestStore store(WithoutMerges());
  Fill(store, 0, 5000);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  Fill(store, 0, 6000, 7);
  ASSERT_TRUE(store->DeleteRange(Key(100), Key(200)).ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_GT(store.Statistic("uncounted_segments"), 0u);
  EXPECT_TRUE(Eventually([&] { return store.Statistic("uncounted_segments") == 0; }));
  const uint64_t reads = Reads(store);
  EXPECT_EQ(Keys(store), 5000u + 143 - 100);
  EXPECT_EQ(Reads(store), reads);
}

TEST(EngineCountTest, AnEmptiedNamespaceIsCountedAtOnce) {
  TestStore store(WithoutMerges());
  Fill(store, 0, 5000);
  ASSERT_TRUE(store->Flush().ok());
  Fill(store, 0, 5000, 5);
  WriteBatch batch;
  batch.ClearNamespace();
  batch.Put("one", "1");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  const uint64_t before = Reads(store);
  EXPECT_EQ(Keys(store), 1u);
  EXPECT_EQ(Reads(store), before);
}

class DropLarge : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord& record) const override { return record.value.size() > 1000; }
};

// A recovery with smaller write buffers than before left some sixty full ones, and DBSIZE walked
// each beside all that lies below: seconds for 3,000 keys.
//
// A record that a filter drops from below was replaced by nothing any more.
// Counted one by one, each of the hundred buffers would be walked beside the whole store.
TEST(EngineCountTest, TheManyBuffersOfARecoveryAreCountedByOneScan) {
  EngineOptions options = WithoutMerges();
  options.write_buffer_size = 16 << 20;
  TestStore store(options);
  constexpr uint64_t kKeys = 20000;
  Fill(store, 0, kKeys);
  ASSERT_TRUE(store->Flush().ok());
  Fill(store, 0, kKeys);
  ASSERT_TRUE(store->Sync().ok());
  testing::TempDir killed;
  testing::CopyDirectory(store.directory.path(), killed.path());

  const uint64_t before_scan = store.Statistic("scan_reads");
  EXPECT_EQ(store->Count({}, Key(0), Key(kKeys)).value().keys, kKeys);
  const uint64_t scan = store.Statistic("scan_reads") - before_scan;

  options.write_buffer_size = 16 << 10;
  const auto recovered = StorageEngine::Open(killed.path(), options);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  EXPECT_EQ((*recovered)->Count({}, {}, {}).value().keys, kKeys);
  for (const auto& [name, reads] : (*recovered)->Statistics()) {
    if (name == "scan_reads") {
      EXPECT_LE(reads, 10 * scan);
    }
  }
}

TEST(EngineCountTest, AFilterMakesWhatLiesAboveUncounted) {
  EngineOptions options = CountOptions();
  options.compaction_filter = std::make_shared<DropLarge>();
  TestStore store(options);
  const std::string large(2000, 'l');
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->Put(Key(i), large).ok());
  EXPECT_EQ(Keys(store), 20u);
  ASSERT_TRUE(store->Put(Key(0), "small").ok());
  EXPECT_EQ(Keys(store), 20u);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(Keys(store), 1u);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(store->Put(Key(i), i % 2 == 0 ? "small" : large).ok());
  EXPECT_EQ(Keys(store), 20u);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(Keys(store), 10u);
  ASSERT_TRUE(store->Put(Key(1), "small").ok());
  EXPECT_EQ(Keys(store), 11u);
}

}  // namespace
}  // namespace varve
