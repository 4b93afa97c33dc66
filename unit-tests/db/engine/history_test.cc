// Every version that a horizon promises is found, and none below it is answered: a model keeps the
// whole history beside random writes, flushes, merges, crashes and openings.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/compaction_filter.h"
#include "varve/history_status.h"
#include "varve/ingest.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;

constexpr NamespaceId kSpaces[] = {kDefaultNamespace, 1};
constexpr HistoryLimits kADay{.time_ms = 86'400'000};

EngineOptions Keeping(const HistoryLimits& limits) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 16u << 10;
  options.segment_size = 8u << 10;
  options.runs_per_level = 2;
  options.max_background_jobs = 4;
  options.history = limits;
  return options;
}

using Contents = std::map<std::string, std::string>;

// What each namespace held after each write.
class HistoryModel {
 public:
  Contents& Of(NamespaceId space) { return now_[space]; }
  void Note(SequenceNumber version) { all_[version] = now_; }
  // Returns what the namespace held once the version had been written.
  const Contents& At(NamespaceId space, SequenceNumber version) const {
    static const Contents none;
    auto state = all_.upper_bound(version);
    if (state == all_.begin()) return none;
    const auto contents = std::prev(state)->second.find(space);
    return contents == std::prev(state)->second.end() ? none : contents->second;
  }
  // Returns whether the version is the last one of a write.
  bool IsWhole(SequenceNumber version) const { return all_.contains(version); }
  SequenceNumber newest() const { return all_.empty() ? kNoSequence : all_.rbegin()->first; }

 private:
  std::map<NamespaceId, Contents> now_;
  std::map<SequenceNumber, std::map<NamespaceId, Contents>> all_;
};

Contents Read(StorageEngine& store, NamespaceId space, const Snapshot* snapshot) {
  Contents contents;
  const auto iterator = store.NewIterator({.snapshot = snapshot, .space = space}, {}, {}, nullptr);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    contents.emplace(iterator->key(), iterator->value());
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  return contents;
}

class HistoryTest : public ::testing::Test {
 protected:
  std::string Key() { return fmt::format("key{:03}", random_() % 60); }

  void WriteSomething(NamespaceId space) {
    Contents& now = model_.Of(space);
    if (random_() % 40 == 0) return IngestSomething(space);
    WriteBatch batch;
    batch.UseNamespace(space);
    const uint64_t choice = random_() % 100;
    if (choice < 60) {
      for (uint64_t i = 0; i <= random_() % 3; ++i) {
        const std::string key = Key();
        const std::string value(random_() % 10 == 0 ? 2000 : 20, static_cast<char>('a' + i));
        batch.Put(key, value + fmt::to_string(++writes_));
        now[key] = value + fmt::to_string(writes_);
      }
    } else if (choice < 85) {
      const std::string key = Key();
      batch.Delete(key);
      now.erase(key);
    } else if (choice < 92) {
      const std::string begin = Key(), end = begin + "5";
      batch.DeleteRange(begin, end);
      now.erase(now.lower_bound(begin), now.lower_bound(end));
    } else if (choice < 96) {
      batch.ClearNamespace(space);
      now.clear();
    } else {
      batch.SwapNamespaces(kSpaces[0], kSpaces[1]);
      std::swap(model_.Of(kSpaces[0]), model_.Of(kSpaces[1]));
    }
    Commit(&batch);
  }
  void IngestSomething(NamespaceId space) {
    Contents& now = model_.Of(space);
    IngestOptions options{.space = space};
    if (random_() % 2 == 0) {
      options.replace = IngestRange{.begin = fmt::format("key{:03}", random_() % 30),
                                    .end = fmt::format("key{:03}", 30 + random_() % 30)};
      now.erase(now.lower_bound(options.replace->begin), now.lower_bound(options.replace->end));
    }
    auto ingest = BeginIngest(&**store_, options);
    ASSERT_TRUE(ingest.ok()) << ingest.status();
    for (int i = 0; i < 60; ++i) {
      const std::string key = fmt::format("key{:03}", i);
      const bool in_range =
          !options.replace || (key >= options.replace->begin && key < options.replace->end);
      if (!in_range || random_() % 2 == 0) continue;
      now[key] = std::string(random_() % 4 == 0 ? 3000 : 30, 'i') + fmt::to_string(++writes_);
      ASSERT_TRUE((*ingest)->Add(key, now[key]).ok());
    }
    const absl::StatusOr<CommitResult> committed = (*ingest)->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
    model_.Note(committed->sequence);
  }
  void Commit(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> committed = (*store_)->Write({}, batch);
    ASSERT_TRUE(committed.ok()) << committed.status();
    model_.Note(committed->sequence);
  }
  void Create(NamespaceId space) {
    WriteBatch batch;
    batch.CreateNamespace({.id = space});
    Commit(&batch);
  }

  // Compares what the store shows at the version with the model.
  void Check(NamespaceId space, SequenceNumber version) {
    StorageEngine& store = **store_;
    const absl::StatusOr<SequenceNumber> first = store.FirstVersion(space);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto snapshot = store.SnapshotAt(space, version);
    // A flush or a merge may have raised the horizon in between.
    if (version < *first) {
      EXPECT_GE(FirstOfTrimmed(snapshot.status()).value_or(0), *first) << snapshot.status();
      return;
    }
    if (FirstOfTrimmed(snapshot.status()).value_or(0) > *first) return;
    ASSERT_TRUE(snapshot.ok()) << snapshot.status() << " at " << version;
    EXPECT_EQ(Read(store, space, snapshot->get()), model_.At(space, version))
        << "namespace " << space << " at " << version << ", horizon " << *first;
    std::string value;
    const std::string key = Key();
    const auto got = store.Get({.snapshot = snapshot->get(), .space = space}, key, &value);
    ASSERT_TRUE(got.ok()) << got.status();
    const Contents& wanted = model_.At(space, version);
    EXPECT_EQ(got->found, wanted.contains(key)) << key << " at " << version;
    if (got->found && wanted.contains(key)) {
      EXPECT_EQ(value, wanted.at(key));
    }
  }
  void CheckSome(int count) {
    for (int i = 0; i < count && !HasFailure(); ++i) {
      SequenceNumber version = 1 + random_() % model_.newest();
      while (!model_.IsWhole(version)) ++version;
      Check(kSpaces[random_() % 2], version);
    }
  }
  void DoSomethingElse() {
    StorageEngine& store = **store_;
    switch (random_() % 40) {
      case 0:
        ASSERT_TRUE(store.Flush().ok());
        break;
      case 1:
        ASSERT_TRUE(store.Compact({}, {}, kSpaces[random_() % 2]).ok());
        break;
      case 2:
        store_->Reopen();
        break;
      case 3:
        ASSERT_TRUE(store.Push().ok());
        store_->Open();  // without a clean end
        break;
      default:
        break;
    }
  }

  std::mt19937_64 random_{::testing::UnitTest::GetInstance()->random_seed() + 1u};
  ManualClock clock_;
  std::unique_ptr<TestStore> store_;
  HistoryModel model_;
  uint64_t writes_ = 0;
};

TEST_F(HistoryTest, EveryVersionIsFoundAgain) {
  store_ = std::make_unique<TestStore>(Keeping(kADay));
  Create(1);
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    WriteSomething(kSpaces[random_() % 2]);
    DoSomethingElse();
    if (i % 50 == 0) CheckSome(5);
  }
  for (const NamespaceId space : kSpaces)
    EXPECT_LE(*(*store_)->FirstVersion(space), 1u) << "nothing is a day old";
  CheckSome(200);
}

TEST_F(HistoryTest, AHorizonByTimeRisesAndIsExact) {
  EngineOptions options = Keeping({.time_ms = 60'000});
  options.clock = &clock_;
  store_ = std::make_unique<TestStore>(options);
  Create(1);
  for (int i = 0; i < 1500 && !HasFailure(); ++i) {
    WriteSomething(kSpaces[random_() % 2]);
    DoSomethingElse();
    clock_.Advance(random_() % 1000);
    if (i % 50 == 0) CheckSome(5);
  }
  ASSERT_TRUE((*store_)->Flush().ok());
  const SequenceNumber first = *(*store_)->FirstVersion(0);
  EXPECT_GT(first, model_.newest() / 2) << "a minute of about twelve is kept";
  EXPECT_LE(first, *(*store_)->VersionAt(clock_.WallMillis() - 60'000));
  CheckSome(200);
}

TEST_F(HistoryTest, AHorizonByBytesBoundsTheDisk) {
  EngineOptions options = Keeping({.bytes = 100'000});
  // A file of the log stays for its values, whole, while one of them is live.
  options.log_file_size = 64u << 10;
  store_ = std::make_unique<TestStore>(options);
  Create(1);
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    WriteSomething(kSpaces[random_() % 2]);
    if (i % 200 == 0) CheckSome(5);
  }
  ASSERT_TRUE((*store_)->Flush().ok());
  for (const NamespaceId space : kSpaces) ASSERT_TRUE((*store_)->Compact({}, {}, space).ok());
  CheckSome(100);
  EXPECT_LT(store_->Statistic("segment_bytes") + store_->Statistic("value_bytes"), 1'500'000u);
}

TEST_F(HistoryTest, WithoutAHistoryOnlyThePresentIsRead) {
  store_ = std::make_unique<TestStore>(Keeping({}));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE((*store_)->Put("key", fmt::to_string(i)).ok());
  const SequenceNumber newest = *(*store_)->FirstVersion(0);
  const auto present = (*store_)->SnapshotAt(0, newest);
  ASSERT_TRUE(present.ok()) << present.status();
  EXPECT_EQ(store_->Get("key", present->get()), "9");
  EXPECT_EQ(FirstOfTrimmed((*store_)->SnapshotAt(0, newest - 1).status()), newest);
  EXPECT_TRUE(absl::IsOutOfRange((*store_)->SnapshotAt(0, newest + 1).status()));
  EXPECT_FALSE(FirstOfTrimmed((*store_)->SnapshotAt(0, newest + 1).status()).has_value());
}

TEST_F(HistoryTest, ANamespaceHasLimitsOfItsOwn) {
  store_ = std::make_unique<TestStore>(Keeping({}));
  ASSERT_TRUE((*store_)->Put("key", "before").ok());
  WriteBatch alter;
  alter.AlterNamespace({.id = 0, .options = {.history = kADay}});
  const SequenceNumber began = (*store_)->Write({}, &alter)->sequence;
  EXPECT_EQ(*(*store_)->FirstVersion(0), began);
  WriteBatch put;
  put.Put("key", "after");
  const SequenceNumber written = (*store_)->Write({}, &put)->sequence;
  put.Clear();
  put.Delete("key");
  ASSERT_TRUE((*store_)->Write({}, &put).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store_->Get("key", (*store_)->SnapshotAt(0, began)->get()), "before");
    EXPECT_EQ(store_->Get("key", (*store_)->SnapshotAt(0, written)->get()), "after");
    EXPECT_EQ(store_->Get("key"), "(missing)");
    EXPECT_EQ(FirstOfTrimmed((*store_)->SnapshotAt(0, began - 1).status()), began);
    if (i == 0) ASSERT_TRUE((*store_)->Compact({}, {}).ok());
    if (i == 1) store_->Reopen();
  }
  // Turned off, it is gone once that is in segments.
  WriteBatch off;
  off.AlterNamespace({.id = 0, .options = {.history = HistoryLimits()}});
  ASSERT_TRUE((*store_)->Write({}, &off).ok());
  ASSERT_TRUE((*store_)->Flush().ok());
  EXPECT_TRUE(FirstOfTrimmed((*store_)->SnapshotAt(0, written).status()).has_value());
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  store_->Reopen();
  EXPECT_TRUE(FirstOfTrimmed((*store_)->SnapshotAt(0, written).status()).has_value());
}

TEST_F(HistoryTest, KeysExpireAtTheInstantThatIsRead) {
  EngineOptions options = Keeping(kADay);
  options.clock = &clock_;
  store_ = std::make_unique<TestStore>(options);
  WriteBatch batch;
  batch.Put("key", "value", kDefaultNamespace, clock_.WallMillis() + 10'000);
  const SequenceNumber version = (*store_)->Write({}, &batch)->sequence;
  clock_.Advance(60'000);
  EXPECT_EQ(store_->Get("key"), "(missing)");
  EXPECT_EQ(store_->Get("key", (*store_)->SnapshotAt(0, version)->get()), "value");
  const uint64_t now = clock_.WallMillis();
  EXPECT_EQ(store_->Get("key", (*store_)->SnapshotAt(0, version, now - 55'000)->get()), "value");
  EXPECT_EQ(store_->Get("key", (*store_)->SnapshotAt(0, version, now - 45'000)->get()),
            "(missing)");
}

// What only the horizon keeps has to end where nothing is written any more, and is bounded.
class HistoryEndsTest : public HistoryTest {
 protected:
  void Open(const HistoryLimits& limits) {
    EngineOptions options = Keeping(limits);
    options.write_buffer_size = 4u << 20;
    options.clock = &clock_;
    store_ = std::make_unique<TestStore>(options);
  }
  // Writes about 400 kB.
  void Fill(NamespaceId space) {
    WriteBatch batch;
    batch.UseNamespace(space);
    for (int i = 0; i < 4000; ++i) batch.Put(fmt::format("key{:05}", i), std::string(90, 'v'));
    ASSERT_TRUE((*store_)->Write({}, &batch).ok());
  }
  void Change(const std::function<void(WriteBatch*)>& fill) {
    WriteBatch batch;
    fill(&batch);
    const absl::StatusOr<CommitResult> committed = (*store_)->Write({}, &batch);
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
  uint64_t BytesOnceMerged() {
    EXPECT_TRUE((*store_)->Flush().ok());
    for (int i = 0; i < 2; ++i) EXPECT_TRUE((*store_)->Compact({}, {}).ok());
    return store_->Statistic("segment_bytes") + store_->Statistic("value_bytes");
  }
  // Returns whether that becomes of what is on disk.
  bool FallsTo(uint64_t bytes) {
    return testing::Eventually([&] { return BytesOnceMerged() < bytes; });
  }
};

TEST_F(HistoryEndsTest, ADroppedNamespaceIsKeptForATimeAndNotForBytes) {
  Open({.bytes = 1u << 30});
  for (NamespaceId space = 5; space < 8; ++space) {
    Create(space);
    Fill(space);
    Change([&](WriteBatch* batch) { batch->DropNamespace(space); });
  }
  EXPECT_TRUE(FallsTo(100'000));
}

TEST_F(HistoryEndsTest, WhatAFlushLeavesBehindCountsAgainstTheLimit) {
  Open({.bytes = 200'000});
  Fill(0);
  ASSERT_TRUE((*store_)->Flush().ok());
  const SequenceNumber full = *(*store_)->FirstVersion(0);
  Change([](WriteBatch* batch) { batch->ClearNamespace(0); });
  EXPECT_TRUE(FallsTo(100'000));
  EXPECT_GT(*(*store_)->FirstVersion(0), full);
  for (int i = 0; i < 5; ++i) {  // what goes before it is flushed counts, too
    Fill(0);
    Change([](WriteBatch* batch) { batch->ClearNamespace(0); });
  }
  EXPECT_TRUE(FallsTo(100'000));
}

// Writers overwrite a few keys for good, where old versions and changes are kept within bytes.
TEST_F(HistoryEndsTest, OverwritingKeepsDiskAndMemoryWithinTheirBounds) {
  EngineOptions options = Keeping({.bytes = 200'000});
  options.write_buffer_size = 64u << 10;
  options.changes.bytes = 1u << 20;
  store_ = std::make_unique<TestStore>(options);
  uint64_t first = 0, changes_first = 0;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 1000; ++i) {
      WriteBatch batch;
      const size_t size = i % 10 == 0 ? 1500 : 300;
      batch.Put(fmt::format("key{}", i % 50), std::string(size, static_cast<char>('a' + round)));
      ASSERT_TRUE((*store_)->Write({}, &batch).ok());
    }
    EXPECT_TRUE(FallsTo(1'000'000)) << "round " << round;
    EXPECT_TRUE(testing::Eventually([&] {
      return (*store_)->Flush().ok() &&
             store_->Statistic("change_bytes") < (1u << 20) + (256u << 10);
    }));
    EXPECT_LT(store_->Statistic("change_memory_bytes"), 1u << 20);
    EXPECT_LT(store_->Statistic("write_buffer_bytes"), 2u << 20);
    const SequenceNumber now_first = *(*store_)->FirstVersion(0);
    EXPECT_GT(now_first, first) << "the horizon rises";
    first = now_first;
    changes_first = (*store_)->GetChangePositions()->first;
  }
  EXPECT_GT(changes_first, 0u);
}

TEST_F(HistoryEndsTest, TimeEndsItWithoutWrites) {
  Open({.time_ms = 60'000});
  Fill(0);
  Change([](WriteBatch* batch) { batch->ClearNamespace(0); });
  EXPECT_GT(BytesOnceMerged(), 300'000u);
  clock_.Advance(120'000);
  EXPECT_TRUE(FallsTo(100'000));
}

TEST_F(HistoryEndsTest, TheLastLimitsOfADroppedNamespaceHold) {
  Open(kADay);
  Create(5);
  Fill(5);
  ASSERT_TRUE((*store_)->Flush().ok());
  Change([](WriteBatch* batch) {
    batch->AlterNamespace({.id = 5, .options = {.history = HistoryLimits{.time_ms = 2'000}}});
  });
  Change([](WriteBatch* batch) { batch->DropNamespace(5); });
  ASSERT_TRUE((*store_)->Flush().ok());
  EXPECT_EQ((*store_)->DroppedNamespaces()->size(), 1u);
  clock_.Advance(120'000);
  EXPECT_TRUE(FallsTo(100'000));
  EXPECT_TRUE(testing::Eventually([&] {
    EXPECT_TRUE((*store_)->Put("key", "value").ok());
    EXPECT_TRUE((*store_)->Flush().ok());
    return (*store_)->DroppedNamespaces()->empty();
  }));
}

TEST_F(HistoryEndsTest, ManyEmptiedGenerationsAreForgotten) {
  Open(kADay);
  for (int i = 0; i < 1300; ++i) {
    Change([](WriteBatch* batch) { batch->Put("key", "value"); });
    Change([](WriteBatch* batch) { batch->ClearNamespace(0); });
  }
  ASSERT_TRUE((*store_)->Flush().ok());
  const SequenceNumber first = *(*store_)->FirstVersion(0);
  EXPECT_GT(first, 300u);
  EXPECT_LT(first, 1000u);
}

TEST_F(HistoryEndsTest, OverlappingRangeDeletesTakeNoMoreThanTheirNumber) {
  Open(kADay);
  Fill(0);
  for (int i = 1; i < 2000; ++i) {
    Change([&](WriteBatch* batch) { batch->DeleteRange("key", fmt::format("key{:05}", i)); });
    if (i % 500 == 0) ASSERT_TRUE((*store_)->Flush().ok());
  }
  EXPECT_TRUE(FallsTo(2'000'000));
  for (const SequenceNumber version : {4000u, 4500u, 5000u, 5900u}) {
    const auto snapshot = (*store_)->SnapshotAt(0, version);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    const auto count = (*store_)->Count({.snapshot = snapshot->get()}, {}, {});
    EXPECT_EQ(count->keys, 8000u - version) << "each range took one more";
  }
}

TEST_F(HistoryEndsTest, TimesAreExactAsFarBackAsVersionsAreKept) {
  Open(kADay);
  std::vector<std::pair<SequenceNumber, uint64_t>> written;
  for (int i = 0; i < 1200; ++i) {
    clock_.Advance(10'000);
    WriteBatch batch;
    batch.Put("key", fmt::to_string(i));
    written.emplace_back((*store_)->Write({}, &batch)->sequence, clock_.WallMillis());
    if (i % 400 == 399) ASSERT_TRUE((*store_)->Flush().ok());
  }
  store_->Reopen();
  for (const auto& [version, instant_ms] : written) {
    EXPECT_EQ(*(*store_)->VersionAt(instant_ms + 9'999), version);
    EXPECT_EQ(*(*store_)->InstantOf(version), instant_ms);
  }
}

TEST_F(HistoryEndsTest, WithoutItsInstantAVersionIsRefused) {
  Open(kADay);
  WriteBatch batch;
  batch.Put("key", "value", kDefaultNamespace, clock_.WallMillis() + 10'000);
  const SequenceNumber version = (*store_)->Write({}, &batch)->sequence;
  ASSERT_TRUE((*store_)->Flush().ok());
  clock_.Advance(60'000);
  ASSERT_TRUE((*store_)->Put("other", "value").ok());
  const SequenceNumber known = *(*store_)->FirstVersion(0);
  EXPECT_LE(known, version);
  store_->Close();
  for (const auto& file : std::filesystem::directory_iterator(store_->directory.path())) {
    if (file.path().extension() == ".tim") std::filesystem::resize_file(file.path(), 25);
  }
  store_->Open();
  EXPECT_TRUE(FirstOfTrimmed((*store_)->SnapshotAt(0, version).status()).has_value())
      << "nobody knows whether the key had expired";
}

// Drops every key that begins with "dead".
class DeadKeys final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord& record) const override { return record.key.starts_with("dead"); }
};

TEST_F(HistoryEndsTest, AFilterLeavesToClonesAndSnapshotsWhatTheySee) {
  EngineOptions options = Keeping({.time_ms = 60'000});
  options.clock = &clock_;
  options.compaction_filter = std::make_shared<DeadKeys>();
  store_ = std::make_unique<TestStore>(options);
  ASSERT_TRUE((*store_)->Put("dead", "value").ok());
  clock_.Advance(600'000);
  ASSERT_TRUE((*store_)->Put("other", "value").ok());
  clock_.Advance(600'000);
  Change([](WriteBatch* batch) { batch->CloneNamespace(0, {.id = 5}); });
  ASSERT_TRUE((*store_)->Put("other", "later").ok());
  (void)BytesOnceMerged();
  std::string value;
  const auto read = (*store_)->Get({.space = 5}, "dead", &value);
  EXPECT_TRUE(read.ok() && read->found) << read.status();
}

}  // namespace
}  // namespace varve
