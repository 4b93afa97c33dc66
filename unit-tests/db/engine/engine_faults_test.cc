// The engine on a disk that fails or is full. A failed sync is final, a full disk is not.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::TestStore;

constexpr WriteOptions kUnsynced{.sync = Durability::kNone, .override_sync = true};

EngineOptions OptionsOn(FaultFileSystem* file_system) {
  EngineOptions options = testing::TestEngineOptions();
  options.file_system = file_system;
  return options;
}

absl::Status PutWith(TestStore& store, const WriteOptions& options, std::string_view key,
                     std::string_view value) {
  WriteBatch batch;
  batch.Put(key, value);
  return store->Write(options, &batch).status();
}

uint64_t SegmentFiles(const TestStore& store) {
  uint64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path()))
    files += entry.path().extension() == ".seg";
  return files;
}

class FailedLogTest : public ::testing::Test {
 protected:
  FailedLogTest() : store_(OptionsOn(&file_system_)) {}
  ~FailedLogTest() override { store_->Close().IgnoreError(); }

  void FailSyncs() {
    file_system_.Fail(FileOperation::kSync, 1, absl::InternalError("the device says no"),
                      FaultFileSystem::kUnlimited, ".log");
  }

  FaultFileSystem file_system_;
  TestStore store_;
};

TEST_F(FailedLogTest, WritesAreRefusedAndReadsGoOnAtWhatIsDurable) {
  ASSERT_TRUE(store_->Put("durable", "1").ok());
  ASSERT_TRUE(store_->Put("overwritten", "old").ok());
  const SequenceNumber durable = store_->durable_sequence();
  ASSERT_TRUE(PutWith(store_, kUnsynced, "never synced", "x").ok());
  EXPECT_EQ(store_.Get("never synced"), "x");
  FailSyncs();
  EXPECT_TRUE(absl::IsUnavailable(store_->Put("overwritten", "new")));
  file_system_.ClearFaults();  // whatever the device says later
  EXPECT_TRUE(absl::IsUnavailable(store_->Put("later", "x")));
  EXPECT_TRUE(absl::IsUnavailable(store_->Delete("durable")));
  EXPECT_TRUE(absl::IsUnavailable(store_->Sync()));
  EXPECT_EQ(store_->durable_sequence(), durable);
  EXPECT_EQ(store_.Get("durable"), "1");
  EXPECT_EQ(store_.Get("overwritten"), "old");
  EXPECT_EQ(store_.Get("never synced"), "(missing)");
  EXPECT_EQ(store_.Scan(), "durable=1 overwritten=old ");
  EXPECT_EQ(store_->Count({}, {}, {}).value().keys, 2u);
  const auto snapshot = store_->GetSnapshot();
  EXPECT_EQ(store_.Scan({}, {}, true, snapshot.get()), "overwritten=old durable=1 ");
  EXPECT_FALSE(store_->Flush().ok());
  EXPECT_EQ(store_.Statistic("flushes"), 0u) << "what was never synced must not get into segments";
}

TEST_F(FailedLogTest, AnEmptyingThatIsNotDurableNeverHappened) {
  ASSERT_TRUE(store_->Put("kept", "1").ok());
  FailSyncs();
  WriteBatch batch;
  batch.ClearNamespace();
  batch.Put("new", "x");
  EXPECT_TRUE(absl::IsUnavailable(store_->Write({}, &batch).status()));
  EXPECT_EQ(store_.Get("kept"), "1");
  EXPECT_EQ(store_.Get("new"), "(missing)");
  EXPECT_EQ(store_.Scan(), "kept=1 ");
  EXPECT_EQ(store_->Count({}, {}, {}).value().keys, 1u);
  EXPECT_EQ(store_.Scan({}, {}, false, store_->GetSnapshot().get()), "kept=1 ");
}

TEST_F(FailedLogTest, AReadOfAnEmptiedNamespaceDependsOnTheEmptying) {
  ASSERT_TRUE(store_->Put("kept", "1").ok());
  WriteBatch batch;
  batch.ClearNamespace();
  const absl::StatusOr<CommitResult> cleared = store_->Submit({}, &batch);
  ASSERT_TRUE(cleared.ok());
  std::string value;
  const absl::StatusOr<ReadResult> read =
      store_->Get({.wait_until_durable = false}, "kept", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->found);
  EXPECT_EQ(read->durable_after, cleared->durable_after);
  FailSyncs();
  EXPECT_EQ(store_.Get("kept"), "1")
      << "a read that waited for the emptying falls back on what is durable";
}

TEST_F(FailedLogTest, AFailedWriteIsFinalToo) {
  ASSERT_TRUE(store_->Put("a", "1").ok());
  file_system_.Fail(FileOperation::kWrite, 1, absl::InternalError("the device says no"), 1'000'000,
                    ".log");
  EXPECT_TRUE(absl::IsUnavailable(store_->Put("b", "2")));
  EXPECT_TRUE(absl::IsUnavailable(store_->Put("c", "3")));
  EXPECT_EQ(store_.Get("a"), "1");
  EXPECT_EQ(store_.Get("b"), "(missing)");
}

TEST_F(FailedLogTest, AReopenedStoreHoldsAllThatWasAcknowledgedAndTakesWrites) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store_->Put(fmt::format("key{}", i), "v").ok());
  FailSyncs();
  EXPECT_FALSE(store_->Put("unsure", "x").ok());
  EXPECT_FALSE(store_->Close().ok());
  file_system_.ClearFaults();
  store_.Open();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(store_.Get(fmt::format("key{}", i)), "v");
  const std::string unsure = store_.Get("unsure");
  EXPECT_TRUE(unsure == "x" || unsure == "(missing)");
  ASSERT_TRUE(store_->Put("again", "y").ok());
  // Whatever it decided on, it stays with.
  store_.Reopen();
  EXPECT_EQ(store_.Get("unsure"), unsure);
}

TEST_F(FailedLogTest, WhatAFailedSyncLeftIsWrittenAgainBeforeItCounts) {
  ASSERT_TRUE(store_->Put("a", "1").ok());
  FailSyncs();
  EXPECT_FALSE(store_->Put("unsure", "x").ok());
  EXPECT_FALSE(store_->Close().ok());
  file_system_.ClearFaults();
  const uint64_t writes = file_system_.calls(FileOperation::kWrite);
  store_.Open();
  ASSERT_EQ(store_.Get("unsure"), "x") << "the kernel still holds it";
  EXPECT_GT(file_system_.calls(FileOperation::kWrite), writes);
}

TEST_F(FailedLogTest, EveryAsynchronousWriteIsAnsweredOnce) {
  std::atomic<int> good{0}, bad{0};
  file_system_.Fail(FileOperation::kSync, 4, absl::InternalError("the device says no"),
                    FaultFileSystem::kUnlimited, ".log");
  int writes = 0;
  EXPECT_TRUE(Eventually([&] {
    for (int i = 0; i < 50; ++i) {
      WriteBatch batch;
      batch.Put(fmt::format("key{}", writes++), "v");
      store_->WriteAsync({}, &batch, [&](const absl::StatusOr<CommitResult>& result) {
        ++(result.ok() ? good : bad);
      });
    }
    return bad > 0;
  }));
  EXPECT_TRUE(Eventually([&] { return good + bad == writes; })) << good << " and " << bad;
  EXPECT_FALSE(store_->Close().ok());
  EXPECT_EQ(good + bad, writes);
}

TEST(EngineCloseTest, AsynchronousWritesAreAnsweredByClose) {
  TestStore store;
  std::atomic<int> good{0}, all{0};
  for (int i = 0; i < 200; ++i) {
    WriteBatch batch;
    batch.Put(fmt::format("key{}", i), "v");
    store->WriteAsync({}, &batch, [&](const absl::StatusOr<CommitResult>& result) {
      good += result.ok();
      ++all;
    });
  }
  ASSERT_TRUE(store->Close().ok());
  EXPECT_EQ(all, 200);
  EXPECT_EQ(good, 200);
  WriteBatch batch;
  batch.Put("late", "v");
  bool called = false;
  store->WriteAsync({}, &batch, [&](const absl::StatusOr<CommitResult>& result) {
    called = absl::IsUnavailable(result.status());
  });
  EXPECT_TRUE(called);
  EXPECT_FALSE(store->Compact({}, {}).ok());
}

// --- A full disk ---------------------------------------------------------------------------------

class FullDiskTest : public ::testing::Test {
 protected:
  FullDiskTest() : store_(Options(&file_system_)) {}

  static EngineOptions Options(FaultFileSystem* file_system) {
    EngineOptions options = OptionsOn(file_system);
    options.write_buffer_size = 64 << 10;
    options.log_file_size = 256 << 10;
    options.segment_size = 64 << 10;
    options.max_full_write_buffers = 2;
    options.sync = Durability::kNone;
    return options;
  }

  std::string Key(int i) const { return fmt::format("key{:06}", i); }

  // Fills the disk; the error that ended it.
  absl::Status Fill() {
    for (; filled_ < 100000; ++filled_) {
      if (absl::Status status = store_->Put(Key(filled_), std::string(1000, 'v')); !status.ok())
        return status;
    }
    return absl::OkStatus();
  }
  void ExpectAllReadable() {
    for (int i = 0; i < filled_; i += 7) ASSERT_EQ(store_.Get(Key(i)).size(), 1000u) << Key(i);
    EXPECT_EQ(store_->Count({}, {}, {}).value_or(CountResult{}).keys,
              static_cast<uint64_t>(filled_));
  }

  FaultFileSystem file_system_;
  TestStore store_;
  int filled_ = 0;
};

TEST_F(FullDiskTest, PutsAreRefusedReadsGoOnAndWritesResumeWithoutARestart) {
  file_system_.SetFreeBytes(1 << 20);
  const absl::Status full = Fill();
  ASSERT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_GT(filled_, 100);
  ExpectAllReadable();
  // A flush that was under way gives log files back, once; then nothing makes room.
  EXPECT_TRUE(Eventually([&] {
    return absl::IsResourceExhausted(Fill()) &&
           absl::IsResourceExhausted(store_->Put("one more", "x"));
  }));
  EXPECT_TRUE(store_->log_status().ok());
  file_system_.SetFreeBytes(FaultFileSystem::kUnlimited);
  EXPECT_TRUE(Eventually([&] { return store_->Put("one more", "x").ok(); }));
  EXPECT_TRUE(Eventually([&] { return store_->Flush().ok(); }));
  ASSERT_TRUE(store_->Delete("one more").ok());
  store_.Reopen();
  ExpectAllReadable();
}

TEST_F(FullDiskTest, DeletesGoOn) {
  file_system_.SetFreeBytes(1 << 20);
  ASSERT_TRUE(absl::IsResourceExhausted(Fill()));
  for (int i = 0; i < 20; ++i) {
    WriteBatch batch;
    batch.Delete(Key(i));
    const absl::Status deleted =
        store_->Write({.sync = Durability::kAlways, .override_sync = true}, &batch).status();
    EXPECT_TRUE(deleted.ok()) << deleted;
    EXPECT_EQ(store_.Get(Key(i)), "(missing)");
  }
  file_system_.SetFreeBytes(FaultFileSystem::kUnlimited);
  EXPECT_TRUE(Eventually([&] { return store_->Flush().ok(); }));
  store_.Reopen();
  EXPECT_EQ(store_.Get(Key(3)), "(missing)");
  EXPECT_EQ(store_.Get(Key(33)).size(), 1000u);
}

TEST_F(FullDiskTest, EmptyingTheStoreGivesTheSpaceBack) {
  for (; filled_ < 2000; ++filled_)
    ASSERT_TRUE(store_->Put(Key(filled_), std::string(1000, 'v')).ok());
  ASSERT_TRUE(store_->Flush().ok());
  file_system_.SetFreeBytes(300 << 10);
  ASSERT_TRUE(absl::IsResourceExhausted(Fill()));
  WriteBatch batch;
  batch.ClearNamespace();
  const absl::Status cleared =
      store_->Write({.sync = Durability::kAlways, .override_sync = true}, &batch).status();
  ASSERT_TRUE(cleared.ok()) << cleared;
  EXPECT_EQ(store_.Scan(), "");
  EXPECT_TRUE(Eventually([&] { return store_->Put("after", "x").ok(); }))
      << "the segments of what was emptied are still there";
  EXPECT_EQ(store_.Scan(), "after=x ");
}

TEST_F(FullDiskTest, FailedFlushesAndMergesLeaveNothingBehind) {
  for (; filled_ < 300; ++filled_)
    ASSERT_TRUE(store_->Put(Key(filled_), std::string(1000, 'v')).ok());
  ASSERT_TRUE(store_->Compact({}, {}).ok());
  // Eventually: what a merge replaced goes when its last reader has gone.
  const auto expect_no_others = [&](const char* where) {
    EXPECT_TRUE(Eventually([&] { return SegmentFiles(store_) == store_.Statistic("segments"); }))
        << SegmentFiles(store_) << where;
  };
  const absl::Status no_space = absl::ResourceExhaustedError("no space left on the test's disk");
  for (const char* where : {".seg", "MANIFEST"}) {
    file_system_.Fail(FileOperation::kWrite, 1, no_space, FaultFileSystem::kUnlimited, where);
    ASSERT_TRUE(
        PutWith(store_, {.sync = Durability::kAlways, .override_sync = true}, "a", where).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(store_->Flush()));
    const uint64_t failed = file_system_.failed_calls();
    EXPECT_TRUE(Eventually([&] { return file_system_.failed_calls() >= failed + 3; })) << "retries";
    expect_no_others(where);
    EXPECT_EQ(store_.Get("a"), where);
    file_system_.ClearFaults();
    EXPECT_TRUE(Eventually([&] { return store_->Flush().ok(); }));
    EXPECT_TRUE(Eventually([&] { return store_->Compact({}, {}).ok(); }));
    file_system_.Fail(FileOperation::kWrite, 1, no_space, FaultFileSystem::kUnlimited, where);
    EXPECT_FALSE(store_->Compact({}, {}).ok());
    expect_no_others(where);
    file_system_.ClearFaults();
    EXPECT_EQ(store_->Count({}, {}, {}).value_or(CountResult{}).keys,
              static_cast<uint64_t>(filled_) + 1);
  }
}

TEST_F(FullDiskTest, TheLogRefusesBeforeItPromises) {
  file_system_.Fail(FileOperation::kWrite, 1,
                    absl::ResourceExhaustedError("no space left on the test's disk"),
                    FaultFileSystem::kUnlimited, ".log.tmp");
  const absl::Status full = Fill();
  ASSERT_TRUE(absl::IsResourceExhausted(full)) << full;
  ExpectAllReadable();
  ASSERT_TRUE(store_->Delete(Key(0)).ok());
  file_system_.ClearFaults();
  EXPECT_TRUE(Eventually([&] { return store_->Put(Key(0), std::string(1000, 'v')).ok(); }));
  ExpectAllReadable();
}

// A flush that failed ended writes with an error that did not say that they resume.
TEST_F(FullDiskTest, AFlushThatFailsRefusesWritesUntilItWorksAgain) {
  for (; filled_ < 100; ++filled_)
    ASSERT_TRUE(store_->Put(Key(filled_), std::string(1000, 'v')).ok());
  file_system_.Fail(FileOperation::kRename, 1, absl::InternalError("the device says no"),
                    FaultFileSystem::kUnlimited, "MANIFEST");
  EXPECT_FALSE(store_->Flush().ok());
  const absl::Status refused = store_->Put("more", "x");
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("writes resume when it succeeds: the device says no"),
            std::string::npos)
      << refused;
  file_system_.ClearFaults();
  ASSERT_TRUE(Eventually([&] { return store_->Put("more", "x").ok(); }));
  ASSERT_TRUE(store_->Delete("more").ok());
  EXPECT_TRUE(store_->Flush().ok());
  ExpectAllReadable();
}

TEST_F(FullDiskTest, AnInstallWhoseRenameWasDoneButNotSyncedKeepsWhatBothManifestsName) {
  for (; filled_ < 100; ++filled_)
    ASSERT_TRUE(store_->Put(Key(filled_), std::string(1000, 'v')).ok());
  ASSERT_TRUE(store_->Sync().ok());
  file_system_.Fail(FileOperation::kSyncDirectory, 1, absl::InternalError("the device says no"),
                    FaultFileSystem::kUnlimited);
  EXPECT_FALSE(store_->Flush().ok());
  store_->Close().IgnoreError();
  file_system_.ClearFaults();
  store_.Open();
  ExpectAllReadable();
}

}  // namespace
}  // namespace varve
