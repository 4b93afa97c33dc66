// What the crash states and failing calls of this folder have found, each by itself
// (docs/decisions/0061 to 0064).
#include <errno.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/spdlog.h"
#include "unit-tests/crash/deterministic_threads.h"
#include "unit-tests/crash/workload.h"
#include "unit-tests/testing/manual_clock.h"
#include "util/base/status.h"
#include "varve/history_status.h"
#include "varve/ingest.h"

namespace varve::testing {
namespace {

constexpr WriteOptions kUnsynced{.sync = Durability::kNone, .override_sync = true};

class FindsTest : public ::testing::Test {
 protected:
  FindsTest() : threads_(1), file_system_(EmptyDisk(), &DeterministicThreads::MaySwitch) {
    spdlog::set_level(spdlog::level::off);
  }
  ~FindsTest() override { spdlog::set_level(spdlog::level::info); }

  static absl::StatusOr<std::unique_ptr<StorageEngine>> Open(SimulatedFileSystem* file_system) {
    return StorageEngine::Open(kStoreDirectory, SmallOptions(1, file_system));
  }
  // What the store holds that opens on the disk, as "key=value ", or why it doesn't.
  static std::string Opened(const SimulatedDisk& disk) {
    SimulatedFileSystem file_system(disk, &DeterministicThreads::MaySwitch);
    const auto store = Open(&file_system);
    return store.ok() ? Scan(store->get()) : store.status().ToString();
  }
  static std::string Scan(StorageEngine* store) {
    std::string text;
    const auto iterator = store->NewIterator({}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
    }
    return iterator->status().ok() ? text : iterator->status().ToString();
  }
  static absl::Status PutUnsynced(StorageEngine* store, std::string_view key,
                                  std::string_view value) {
    WriteBatch batch;
    batch.Put(key, value);
    return store->Write(kUnsynced, &batch).status();
  }

  const DeterministicThreads threads_;
  SimulatedFileSystem file_system_;
};

// The name of a new store's directory was not synced into its parent: a power cut soon after the
// first start took the whole store.
TEST_F(FindsTest, ANewStoresDirectoryIsNotLostWithAllThatWasAcknowledgedInIt) {
  const auto store = Open(&file_system_);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Put("key", "value").ok());
  EXPECT_EQ(Opened(file_system_.disk().CutPower(SimulatedDisk::kLoseAll)), "key=value ");
}

// A process killed between the manifest's rename and the directory's sync left a manifest in the
// kernel's memory alone. The next start believed it and removed the segments that it does not name;
// a power cut then brought the old manifest back without its segments.
TEST_F(FindsTest, SegmentsThatTheManifestOnDiskMayStillNameAreNotRemovedByAnOpening) {
  {
    const auto store = Open(&file_system_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Put("key", "value").ok());
    ASSERT_TRUE((*store)->Flush().ok());
    // The manifest without the segment is there for programs, but its name is not on disk when the
    // process is killed.
    file_system_.Fail(FileOperation::kSyncDirectory, 1, IoError(EIO, "sync directory", "injected"));
    WriteBatch batch;
    batch.ClearNamespace();
    ASSERT_TRUE((*store)->Write({}, &batch).ok());
    absl::SleepFor(absl::Seconds(1));
    file_system_.StopHere();
  }
  file_system_.GoOn();
  file_system_.ClearFaults();
  for (uint64_t calls = 0; calls < 20; ++calls) {
    SimulatedFileSystem opening(file_system_.disk(), &DeterministicThreads::MaySwitch);
    opening.StopAfter(calls);
    Open(&opening).status().IgnoreError();
    for (uint64_t choice = 0; choice < 40; ++choice) {
      ASSERT_EQ(Opened(opening.disk().CutPower(choice)), "")
          << calls << " calls, choice " << choice;
    }
  }
}

// Scans and counts pushed what the log had not written yet, even where they show only what is
// durable, and so failed for good.
TEST_F(FindsTest, ScansAndCountsGoOnAfterAFailedWriteOfAModeWithoutSync) {
  const auto store = Open(&file_system_);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Put("durable", "1").ok());
  absl::SleepFor(absl::Seconds(1));  // the log's next file is ready
  file_system_.Fail(FileOperation::kWrite, 1, IoError(EIO, "write", "injected"), 1, ".log");
  EXPECT_TRUE(absl::IsUnavailable(PutUnsynced(store->get(), "lost", "2")));
  EXPECT_EQ(Scan(store->get()), "durable=1 ");
  const absl::StatusOr<CountResult> count = (*store)->Count({}, {}, {});
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count->keys, 1u);
}

// While flushes failed as well, the error of a write said that writes would resume, although the
// log had ended.
TEST_F(FindsTest, OnceTheLogHasFailedWritesSaySoWhateverElseFails) {
  const auto store = Open(&file_system_);
  ASSERT_TRUE(store.ok()) << store.status();
  file_system_.Fail(FileOperation::kSync, 1, IoError(EIO, "sync", "injected"),
                    SimulatedFileSystem::kUnlimited, ".seg");
  ASSERT_TRUE(PutUnsynced(store->get(), "key", std::string(20'000, 'v')).ok());
  absl::SleepFor(absl::Seconds(1));
  EXPECT_TRUE(absl::IsResourceExhausted((*store)->Put("key", "value"))) << "flushes fail";
  file_system_.Fail(FileOperation::kSync, 1, IoError(EIO, "sync", "injected"), 1, ".log");
  EXPECT_TRUE(absl::IsUnavailable((*store)->Delete("key"))) << (*store)->log_status();
  EXPECT_TRUE(absl::IsUnavailable((*store)->Put("key", "value")));
}

// A count left out the keys of a namespace whose emptying was not on disk yet, and the next flush
// wrote that into the manifest. A power cut took the emptying back, and DBSIZE was wrong for good
// (state 11201 of seed 1009).
TEST_F(FindsTest, WhatWasCountedBesideAnEmptyingThatACrashTookBackIsCountedAgain) {
  const auto store = Open(&file_system_);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Put("key1", "value").ok());
  ASSERT_TRUE((*store)->Put("key9", "value").ok());
  ASSERT_TRUE((*store)->Flush().ok());
  ASSERT_TRUE((*store)->Put("key5", "value").ok());
  file_system_.Fail(FileOperation::kCreate, 1, IoError(ENOSPC, "create", "injected"),
                    SimulatedFileSystem::kUnlimited, ".seg");
  ASSERT_FALSE((*store)->Flush().ok());
  WriteBatch batch;
  batch.ClearNamespace();
  ASSERT_TRUE((*store)->Write(kUnsynced, &batch).ok());
  const uint64_t emptied_at = file_system_.trace_size();
  EXPECT_EQ((*store)->Count({}, {}, {}).value().keys, 0u);
  file_system_.ClearFaults();
  absl::SleepFor(absl::Seconds(3));
  ASSERT_EQ(StatisticOf(**store, "flushes"), 2u);
  ASSERT_EQ(StatisticOf(**store, "compactions"), 1u);
  // A merge followed, which finds the truth: the power is cut at each change of the disk.
  SimulatedDisk disk = EmptyDisk();
  for (size_t at = 0; at < file_system_.trace().size(); ++at) {
    disk.Apply(file_system_.trace()[at]);
    if (at < emptied_at) continue;
    SimulatedFileSystem after(disk.CutPower(SimulatedDisk::kLoseAll),
                              &DeterministicThreads::MaySwitch);
    const auto again = Open(&after);
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_EQ(Scan(again->get()), "key1=value key5=value key9=value ")
        << "the emptying was not on disk";
    ASSERT_EQ((*again)->Count({}, {}, {}).value().keys, 3u) << "after " << at << " changes";
  }
}

// A reader that finds a key expired waits for the clock mark. When the log failed with a mark on
// its way, each later read of an expired key waited for it, and failed.
TEST_F(FindsTest, ReadsOfWhatHasExpiredGoOnAfterTheLogFailedWithTheMarkThatSaysSo) {
  ManualClock clock;
  const auto store =
      StorageEngine::Open(kStoreDirectory, SmallOptions(1, &file_system_, &clock)).value();
  WriteBatch batch;
  batch.Put("brief", "value", kDefaultNamespace, ManualClock::kStart + 10);
  batch.Put("durable", "1");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  clock.Advance(10);
  file_system_.Fail(FileOperation::kSync, 1, IoError(EIO, "sync", "injected"), 1, ".log");
  std::string value;
  for (int i = 0; i < 3; ++i) {
    const absl::StatusOr<ReadResult> read = store->Get({}, "brief", &value);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_FALSE(read->found);
    EXPECT_EQ(Scan(store.get()), "durable=1 ");
  }
  EXPECT_TRUE(absl::IsUnavailable(store->log_status()));
}

// Range tombstones are read once, at the opening. One failed read hid keys until the next start,
// and so did a lack of memory or of descriptors, which says nothing of the disk.
TEST_F(FindsTest, AReadThatFailsOnceAtTheStartHidesNothingUntilTheNextOne) {
  {
    const auto store = Open(&file_system_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->Put("key1", "value").ok());
    ASSERT_TRUE((*store)->Put("key2", "value").ok());
    ASSERT_TRUE((*store)->Flush().ok());
    ASSERT_TRUE((*store)->DeleteRange("key1", "key2").ok());
    ASSERT_TRUE((*store)->Flush().ok());
    ASSERT_TRUE((*store)->Close().ok());
  }
  for (uint64_t nth = 1; nth <= 2; ++nth) {
    SimulatedFileSystem file_system(file_system_.disk(), &DeterministicThreads::MaySwitch);
    file_system.Fail(FileOperation::kRead, nth, IoError(EIO, "read", "injected"), 1, ".seg");
    const auto store = Open(&file_system);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ(Scan(store->get()), "key2=value ") << "read " << nth;
    EXPECT_TRUE((*store)->Compact({}, {}).ok());
    EXPECT_GE(file_system.failed_calls(), 1u);
  }
}

// The manifest with an ingest was on disk before any file had its change. The start after a crash
// in between gave up all changes that were retained, and every feed lost its place.
TEST_F(FindsTest, AnIngestThatIsKilledTakesNoPlaceOfAReaderOfChanges) {
  SequenceNumber before = kNoSequence;
  {
    const auto store = Open(&file_system_);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->CreateFeed({.name = "reader", .position = kMaxSequence}).ok());
    ASSERT_TRUE((*store)->Put("key1", "value").ok());
    before = StatisticOf(**store, "sequence");
    const auto ingest = BeginIngest(store->get(), {.replace = IngestRange{"key", "l"}});
    ASSERT_TRUE(ingest.ok()) << ingest.status();
    ASSERT_TRUE((*ingest)->Add("key2", "value").ok());
    ASSERT_TRUE((*ingest)->Commit().ok());
    ASSERT_TRUE((*store)->Put("key3", "value").ok());
  }
  SimulatedDisk disk = EmptyDisk();
  std::set<std::string> seen;
  for (const DiskEvent& event : file_system_.trace()) {
    disk.Apply(event);
    SimulatedFileSystem after(disk, &DeterministicThreads::MaySwitch);
    const auto store = Open(&after);
    ASSERT_TRUE(store.ok()) << store.status();
    if (StatisticOf(**store, "sequence") < before) continue;
    const std::vector<FeedPlace> feeds = (*store)->Feeds();
    ASSERT_EQ(feeds.size(), 1u);
    ASSERT_FALSE(feeds.front().lost);
    const auto changes = (*store)->NewChangeIterator(feeds.front().position, {});
    ASSERT_TRUE(changes.ok()) << changes.status();
    std::string told;
    for (absl::StatusOr<bool> more = (*changes)->Next(); more.ok() && *more;
         more = (*changes)->Next()) {
      for (const ChangeOperation& operation : (*changes)->change().operations)
        told += operation.key + " ";
    }
    const std::string held = Scan(store->get());
    seen.insert(held);
    EXPECT_EQ(told, held == "key1=value "   ? "key1 "
                    : held == "key2=value " ? "key1 key key2 "
                                            : "key1 key key2 key3 ")
        << held;
  }
  EXPECT_EQ(seen.size(), 3u);
}

// While no history was kept, a flush dropped what an emptying of the namespace covered that was in
// the log alone. A history that began with the next opening promised the versions before the
// emptying, and showed what had been there earlier.
TEST_F(FindsTest, AHistoryThatBeginsWithAnOpeningTellsNothingWrongOfWhatTheLogHeld) {
  EngineOptions without = SmallOptions(1, &file_system_);
  without.history = {};
  without.changes = {};
  EngineOptions with = without;
  with.history.time_ms = 86'400'000;
  for (int round = 0; round < 40; ++round) {
    std::map<SequenceNumber, std::string> written;
    {
      const auto store = StorageEngine::Open(kStoreDirectory, without);
      ASSERT_TRUE(store.ok()) << store.status();
      const auto change = [&](std::string_view value) {
        WriteBatch batch;
        value.empty() ? batch.ClearNamespace(kDefaultNamespace) : batch.Put("key", value);
        const absl::StatusOr<CommitResult> committed = (*store)->Write({}, &batch);
        ASSERT_TRUE(committed.ok()) << committed.status();
        written[committed->sequence] = value;
      };
      change("old");
      ASSERT_TRUE((*store)->Flush().ok());
      for (int i = 0; i <= round % 4; ++i) change("new" + std::string(6000, '.'));
      change({});
      for (int i = 0; i <= round / 4; ++i) change("end" + std::string(6000, '.'));
    }
    const auto store = StorageEngine::Open(kStoreDirectory, with);
    ASSERT_TRUE(store.ok()) << store.status();
    for (const auto& [version, value] : written) {
      const auto then = (*store)->SnapshotAt(kDefaultNamespace, version);
      if (FirstOfTrimmed(then.status())) continue;
      ASSERT_TRUE(then.ok()) << then.status();
      std::string found;
      const auto read = (*store)->Get({.snapshot = then->get()}, "key", &found);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(found.substr(0, 3), value.substr(0, 3)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace varve::testing
