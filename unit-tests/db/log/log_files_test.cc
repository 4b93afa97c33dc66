#include "db/log/log_files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/format/log_format.h"
#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FileOperation;

constexpr uint64_t kFileSize = 64u << 10;

class LogFilesTest : public ::testing::Test {
 protected:
  LogFilesTest() {
    options_.directory = dir_.path();
    options_.store_id = testing::kTestStore;
    options_.file_size = kFileSize;
  }
  void Start() {
    files_ = std::make_unique<LogFiles>(&fs_, options_, &thread_);
    absl::StatusOr<LogFile> first = files_->Start(1);
    ASSERT_TRUE(first.ok()) << first.status();
    in_use_ = *std::move(first);
  }
  bool HasNext() {
    return Eventually([this] { return files_->next_size() > 0; });
  }
  // The file in use ends with operation `last`.
  void Advance(SequenceNumber last, bool mostly_large = false) {
    ASSERT_TRUE(HasNext());
    absl::StatusOr<LogFile> next = files_->Advance({in_use_.number, kFileSize, last}, mostly_large);
    ASSERT_TRUE(next.ok()) << next.status();
    in_use_ = *std::move(next);
  }
  bool Exists(uint64_t number) const {
    return std::filesystem::exists(dir_.File(LogFileName(number)));
  }
  size_t FileCount() const { return PosixFileSystem()->List(dir_.path())->size(); }

  const testing::TempDir dir_;
  testing::FaultFileSystem fs_;
  LogOptions options_;
  FileThread thread_;
  std::unique_ptr<LogFiles> files_;
  LogFile in_use_;
};

const auto kKeepsNone = [](const LogEnd&) { return false; };

TEST_F(LogFilesTest, TheNextFileIsPreparedAhead) {
  Start();
  EXPECT_EQ(in_use_.number, 1u);
  Advance(10);
  EXPECT_EQ(in_use_.number, 2u);
  EXPECT_EQ(in_use_.size, kFileSize);
  Advance(20);
  EXPECT_EQ(in_use_.number, 3u);
  const std::vector<LogEnd> completed = files_->Completed();
  ASSERT_EQ(completed.size(), 2u);
  EXPECT_EQ(completed[0].file_number, 1u);
  EXPECT_EQ(completed[1].last_sequence, 20u);
  EXPECT_EQ(files_->completed_bytes(), 2 * kFileSize);
}

TEST_F(LogFilesTest, RetiredFilesBecomeTheNextOnes) {
  Start();
  Advance(10);
  Advance(20);
  ASSERT_TRUE(HasNext());
  files_->Retire(10, kKeepsNone);
  EXPECT_EQ(files_->Completed().size(), 1u) << "20 is still needed";
  Advance(30);  // the file that was prepared before
  Advance(40);
  EXPECT_TRUE(in_use_.is_recycled);
  EXPECT_FALSE(Exists(1));
  EXPECT_EQ(files_->recycled(), 1u);
}

TEST_F(LogFilesTest, AFileThatTheCallerKeepsIsLeftAsItIs) {
  Start();
  Advance(10);
  Advance(20);
  files_->Retire(20, [](const LogEnd& end) { return end.file_number == 1; });
  EXPECT_TRUE(files_->Completed().empty());
  Advance(30);
  Advance(40);
  EXPECT_TRUE(Exists(1));
  EXPECT_FALSE(Exists(2)) << "recycled";
}

TEST_F(LogFilesTest, FilesOfAnEarlierRunAreRemovedAndNotRecycled) {
  testing::WriteFile(dir_.File(LogFileName(7)), "of an earlier run");
  options_.next_file_number = [next = uint64_t{100}]() mutable { return next++; };
  Start();
  files_->Adopt({{7, 4096, 5}});
  ASSERT_EQ(files_->Completed().size(), 1u);
  files_->Retire(5, kKeepsNone);
  EXPECT_TRUE(Eventually([this] { return !Exists(7); }));
  Advance(10);
  Advance(20);
  EXPECT_EQ(files_->recycled(), 0u);
}

TEST_F(LogFilesTest, StoppingRemovesWhatHoldsNoOperations) {
  Start();
  Advance(10);
  Advance(20);
  ASSERT_TRUE(HasNext());
  files_->Retire(10, kKeepsNone);
  files_->Stop();
  EXPECT_EQ(FileCount(), 2u) << "the one in use, and the one before it";
  EXPECT_TRUE(Exists(2) && Exists(in_use_.number));
  EXPECT_TRUE(absl::IsUnavailable(files_->PrepareNext(kFileSize)));
}

TEST_F(LogFilesTest, AFileThatCannotBeMadeIsTriedAgain) {
  Start();
  ASSERT_TRUE(HasNext());
  fs_.Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("the disk is full"));
  Advance(10);
  const absl::Status refused = files_->PrepareNext(kFileSize);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(refused.message().find("the disk is full"), std::string::npos) << refused;
  EXPECT_TRUE(absl::IsNotFound(files_->Advance({2, kFileSize, 20}, false).status()));
  fs_.ClearFaults();
  EXPECT_TRUE(HasNext());
  EXPECT_TRUE(files_->PrepareNext(kFileSize).ok());
}

TEST_F(LogFilesTest, TheNextFileGrowsForALargeRecord) {
  Start();
  ASSERT_TRUE(files_->PrepareNext(10 * kFileSize).ok());
  while (files_->next_size() < 10 * kFileSize)
    ASSERT_TRUE(files_->PrepareNext(10 * kFileSize).ok());
  EXPECT_EQ(files_->next_size(), 10 * kFileSize);
  Advance(10);
  EXPECT_EQ(in_use_.size, 10 * kFileSize);
  EXPECT_EQ(*in_use_.file->Size(), 10 * kFileSize);
}

TEST_F(LogFilesTest, SizesDoubleUntilTheyAreWhatWasAskedFor) {
  options_.file_size = 16u << 20;
  Start();
  EXPECT_EQ(in_use_.size, 2u << 20);
  files_->NoteUsed(2u << 20);
  Advance(5);
  EXPECT_EQ(in_use_.size, 4u << 20);
  files_->NoteUsed(4u << 20);
  Advance(10);
  EXPECT_EQ(in_use_.size, 8u << 20);
  files_->NoteUsed(8u << 20);
  Advance(20);
  EXPECT_EQ(in_use_.size, 16u << 20);
  files_->NoteUsed(16u << 20);
  Advance(30);
  EXPECT_EQ(in_use_.size, 16u << 20);
}

// The log may have promised the next file to a record already.
TEST_F(LogFilesTest, ShedFilesGoAndTheNextFileStays) {
  constexpr uint64_t kUsualSize = uint64_t{16} << 20;
  options_.file_size = kUsualSize;
  Start();
  Advance(10);
  Advance(20);
  ASSERT_TRUE(HasNext());
  files_->Retire(10, kKeepsNone);
  files_->SetRecycling(false);
  EXPECT_FALSE(files_->Shed()) << "somebody counts on the next file";
  files_->SetRecycling(true);
  files_->Retire(20, kKeepsNone);
  ASSERT_EQ(files_->next_size(), kUsualSize);
  EXPECT_TRUE(files_->Shed());
  EXPECT_EQ(files_->next_size(), kUsualSize);
  EXPECT_TRUE(Eventually([this] { return !Exists(1) && !Exists(2); }));
  Advance(30);
  EXPECT_EQ(in_use_.size, kUsualSize);
  ASSERT_TRUE(HasNext());
  EXPECT_EQ(files_->next_size(), LogFiles::kSizeAtRest);
  Advance(40);
  EXPECT_EQ(in_use_.size, LogFiles::kSizeAtRest);
  files_->Retire(40, kKeepsNone);
  EXPECT_TRUE(Eventually([this] { return !Exists(3) && !Exists(4); })) << "not recycled at rest";
  Advance(50);
  EXPECT_EQ(in_use_.size, 2 * LogFiles::kSizeAtRest) << "and they grow again";
  EXPECT_EQ(files_->recycled(), 0u);
  files_->Retire(50, kKeepsNone);
  Advance(60);
  Advance(70);
  EXPECT_EQ(files_->recycled(), 1u);
}

}  // namespace
}  // namespace varve
