#include "db/values/value_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "db/format/file_names.h"
#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

const std::string kKey = std::string("\0\0\0\1", 4) + "key";

// A file with one large operation at offset 100.
class ValueFilesTest : public ::testing::Test {
 protected:
  ValueFilesTest() {
    AppendLargeOperation({.key = kKey, .value = value_, .sequence = 7, .kind = RecordKind::kValue},
                         &operation_);
    std::ofstream(LogPath(), std::ios::binary) << std::string(100, 'x') << operation_;
    handle_ = {5, 100, static_cast<uint32_t>(operation_.size()),
               static_cast<uint32_t>(value_.size())};
  }

  std::string LogPath() const { return directory_.path() + "/" + LogFileName(5); }
  std::shared_ptr<ValueFile> Acquire() {
    return files_.Acquire(PosixFileSystem(), directory_.path(), 5);
  }
  absl::Status Read(ValueFile& file, std::string_view user_key, SequenceNumber sequence) {
    return file.ReadOperation(handle_, user_key, sequence, &bytes_, &record_);
  }

  const testing::TempDir directory_;
  const std::string value_ = std::string(2000, 'v');
  std::string operation_;
  ValueHandle handle_;
  ValueFiles files_;
  std::string bytes_;
  RecordView record_;
};

TEST_F(ValueFilesTest, AnOperationIsReadAndChecked) {
  const auto file = Acquire();
  ASSERT_TRUE(Read(*file, "key", 7).ok());
  EXPECT_EQ(record_.value, value_);
  EXPECT_TRUE(absl::IsDataLoss(Read(*file, "key", 8)));
  EXPECT_TRUE(absl::IsDataLoss(Read(*file, "other", 7)));
  EXPECT_TRUE(file->is_damaged());
}

TEST_F(ValueFilesTest, TheRegistryHasOneHandleAFile) {
  const auto file = Acquire();
  EXPECT_EQ(Acquire(), file);
  EXPECT_EQ(files_.Find(5), file);
  EXPECT_TRUE(files_.HoldsOfLog(5));
  EXPECT_FALSE(files_.HoldsOfLog(6));
  file->TakeOver(0);
  EXPECT_FALSE(files_.HoldsOfLog(5));
}

TEST_F(ValueFilesTest, WhatNobodyHoldsIsForgotten) {
  Acquire();
  EXPECT_EQ(files_.Find(5), nullptr);
}

TEST_F(ValueFilesTest, AFileThatLeavesTheLogIsRenamedAndCut) {
  const auto file = Acquire();
  EXPECT_EQ(file->Size(), 0u) << "the log's";
  ASSERT_TRUE(Read(*file, "key", 7).ok()) << "open under the old name";
  std::ofstream(LogPath(), std::ios::binary | std::ios::app) << std::string(500, 'z');
  ASSERT_TRUE(file->LeaveLog(100 + operation_.size()).ok());
  EXPECT_FALSE(std::filesystem::exists(LogPath()));
  EXPECT_EQ(std::filesystem::file_size(ValueFilePath(directory_.path(), 5)),
            100 + operation_.size());
  EXPECT_EQ(file->Size(), 100 + operation_.size());
  EXPECT_TRUE(Read(*file, "key", 7).ok());
}

TEST_F(ValueFilesTest, AMissingFileIsDataLoss) {
  std::filesystem::remove(LogPath());
  const auto file = Acquire();
  EXPECT_TRUE(absl::IsDataLoss(Read(*file, "key", 7)));
  EXPECT_TRUE(file->is_damaged());
}

TEST_F(ValueFilesTest, AFileThatTheDeviceFailsToReadIsDamaged) {
  testing::FaultFileSystem file_system;
  const auto file = files_.Acquire(&file_system, directory_.path(), 5);
  file_system.Fail(testing::FileOperation::kRead, 1, absl::ResourceExhaustedError("no memory"), 1);
  EXPECT_TRUE(absl::IsResourceExhausted(Read(*file, "key", 7)));
  EXPECT_FALSE(file->is_damaged()) << "a lack of memory says nothing about the disk";
  file_system.ClearFaults();
  file_system.Fail(testing::FileOperation::kRead, 1, absl::InternalError("the device says no"), 1);
  EXPECT_TRUE(absl::IsInternal(Read(*file, "key", 7)));
  EXPECT_TRUE(file->is_damaged());
  EXPECT_TRUE(Read(*file, "key", 7).ok()) << "what the device reads again is readable";
}

}  // namespace
}  // namespace varve
