#include "db/log/log_syncer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::FileOperation;

class LogSyncerTest : public ::testing::Test {
 protected:
  std::shared_ptr<File> NewFile() {
    absl::StatusOr<std::unique_ptr<File>> file =
        files_.OpenForWrite(directory_.File(std::to_string(++made_) + ".log"), /*create=*/true);
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  // Everything up to `last` is with the kernel.
  void Write(SequenceNumber last) {
    progress_.Appended(last, Durability::kAlways, 1);
    progress_.Written(last, 1);
  }
  uint64_t syncs() const { return files_.calls(FileOperation::kSync); }

  const testing::TempDir directory_;
  testing::FaultFileSystem files_;
  int made_ = 0;
  LogProgress progress_{0};
  LogSyncer syncer_{&progress_};
};

TEST_F(LogSyncerTest, WhatIsSyncedIsDurableAndNotSyncedAgain) {
  const auto file = NewFile();
  Write(5);
  ASSERT_TRUE(syncer_.Sync(file, 4).ok());
  EXPECT_EQ(progress_.durable(), 4u);
  EXPECT_EQ(syncs(), 1u);
  ASSERT_TRUE(syncer_.Sync(file, 3).ok());
  EXPECT_EQ(syncs(), 1u);
  EXPECT_EQ(progress_.durable(), 4u);
}

TEST_F(LogSyncerTest, ASyncBeginsWithTheFilesThatWereLeft) {
  Write(9);
  ASSERT_TRUE(syncer_.Leave(NewFile(), 3).ok());
  EXPECT_EQ(syncs(), 0u);
  EXPECT_EQ(progress_.durable(), 0u);
  const auto last = NewFile();
  ASSERT_TRUE(syncer_.Sync(last, 6).ok());
  EXPECT_EQ(syncs(), 2u);
  ASSERT_TRUE(syncer_.Sync(last, 9).ok());
  EXPECT_EQ(syncs(), 3u) << "a file that was left is synced once";
}

TEST_F(LogSyncerTest, AFileThatGoesOnBehindTheTargetStaysLeft) {
  Write(9);
  const auto first = NewFile();
  const auto second = NewFile();
  ASSERT_TRUE(syncer_.Leave(first, 3).ok());
  ASSERT_TRUE(syncer_.Leave(second, 7).ok());
  ASSERT_TRUE(syncer_.Sync(second, 6).ok());
  EXPECT_EQ(syncs(), 2u);
  ASSERT_TRUE(syncer_.Sync(NewFile(), 9).ok());
  EXPECT_EQ(syncs(), 4u);
  EXPECT_EQ(progress_.durable(), 9u);
}

TEST_F(LogSyncerTest, OnlyAFewFilesAreLeft) {
  Write(9);
  for (SequenceNumber last = 1; last <= 4; ++last) ASSERT_TRUE(syncer_.Leave(NewFile(), last).ok());
  EXPECT_EQ(syncs(), 0u);
  ASSERT_TRUE(syncer_.Leave(NewFile(), 5).ok());
  EXPECT_EQ(syncs(), 5u);
  EXPECT_EQ(progress_.durable(), 5u);
}

TEST_F(LogSyncerTest, ADurableFileIsNotLeft) {
  Write(5);
  const auto file = NewFile();
  ASSERT_TRUE(syncer_.Sync(file, 5).ok());
  ASSERT_TRUE(syncer_.Leave(file, 5).ok());
  Write(6);
  ASSERT_TRUE(syncer_.Sync(NewFile(), 6).ok());
  EXPECT_EQ(syncs(), 2u);
}

TEST_F(LogSyncerTest, AFailedSyncIsTheLogsEnd) {
  Write(9);
  ASSERT_TRUE(syncer_.Leave(NewFile(), 3).ok());
  files_.Fail(FileOperation::kSync, 1, absl::InternalError("lost pages"), /*times=*/1);
  const absl::Status failed = syncer_.Sync(NewFile(), 6);
  EXPECT_TRUE(absl::IsUnavailable(failed)) << failed;
  EXPECT_TRUE(progress_.failed());
  EXPECT_EQ(progress_.durable(), 0u);
  // The kernel reports lost pages once: the next sync must not be believed.
  EXPECT_EQ(syncer_.Sync(NewFile(), 9), failed);
  EXPECT_EQ(syncs(), 1u);
  EXPECT_EQ(progress_.durable(), 0u);
}

}  // namespace
}  // namespace varve
