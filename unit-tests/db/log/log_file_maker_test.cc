#include "db/log/log_file_maker.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "db/format/log_format.h"
#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::FileOperation;
using testing::ReadFile;
using testing::WriteFile;

constexpr uint64_t kSize = 1u << 20;

class LogFileMakerTest : public ::testing::Test {
 protected:
  LogFileMakerTest() {
    options_.directory = dir_.path();
    options_.store_id = testing::kTestStore;
  }
  // Does all steps. Returns their number, or the error.
  absl::StatusOr<int> Make(LogFileMaker* maker) {
    for (int steps = 1;; ++steps) {
      const absl::StatusOr<bool> is_complete = maker->Step();
      if (!is_complete.ok()) return is_complete.status();
      if (*is_complete) return steps;
    }
  }
  size_t FileCount() const { return PosixFileSystem()->List(dir_.path())->size(); }
  std::string PathOf(uint64_t number) const { return dir_.File(LogFileName(number)); }

  const testing::TempDir dir_;
  testing::FaultFileSystem files_;
  LogOptions options_;
};

TEST_F(LogFileMakerTest, AFileIsItsHeaderAndZeros) {
  for (const bool allocates : {false, true}) {
    LogFileMaker maker(&files_, options_, {.number = 3, .size = kSize, .allocates = allocates});
    EXPECT_TRUE(Make(&maker).ok());
    const LogFile file = maker.Take();
    EXPECT_EQ(file.number, 3u);
    EXPECT_EQ(file.size, kSize);
    EXPECT_FALSE(file.is_recycled);
    EXPECT_EQ(file.file->path(), PathOf(3));
    const std::string content = ReadFile(PathOf(3));
    ASSERT_EQ(content.size(), kSize);
    EXPECT_EQ(content.find_first_not_of('\0', kLogPageSize), std::string::npos);
    EXPECT_TRUE(
        CheckLogHeaderPage(content.substr(0, kLogPageSize), PathOf(3), 3, testing::kTestStore)
            .ok());
  }
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(LogFileMakerTest, ZerosAreWrittenAStepAtATime) {
  LogFileMaker maker(&files_, options_, {.number = 3, .size = kSize});
  double done = 0;
  const uint64_t steps = kSize / LogFileMaker::kStep + 1;  // the header is a step, too
  for (uint64_t step = 1; step < steps; ++step) {
    const absl::StatusOr<bool> is_complete = maker.Step();
    ASSERT_TRUE(is_complete.ok() && !*is_complete) << step;
    EXPECT_GT(maker.part_done(), done);
    done = maker.part_done();
    EXPECT_FALSE(std::filesystem::exists(PathOf(3))) << "it has its name once it is complete";
  }
  EXPECT_TRUE(*maker.Step());
  EXPECT_EQ(maker.part_done(), 1);
  maker.Take();
}

TEST_F(LogFileMakerTest, AnOldFileIsTakenOverWithANewHeader) {
  for (const uint64_t old_size : {kSize / 2, kSize, 2 * kSize}) {
    WriteFile(PathOf(1), std::string(old_size, 'o'));
    LogFileMaker maker(&files_, options_, {.number = 2, .size = kSize, .recycled_path = PathOf(1)});
    EXPECT_TRUE(Make(&maker).ok());
    EXPECT_TRUE(maker.Take().is_recycled);
    const std::string content = ReadFile(PathOf(2));
    ASSERT_EQ(content.size(), kSize);
    EXPECT_TRUE(
        CheckLogHeaderPage(content.substr(0, kLogPageSize), PathOf(2), 2, testing::kTestStore)
            .ok());
    EXPECT_EQ(content[kSize - 1], old_size >= kSize ? 'o' : '\0');
    EXPECT_FALSE(std::filesystem::exists(PathOf(1)));
  }
}

TEST_F(LogFileMakerTest, AFileThatIsNotTakenLeavesNothingBehind) {
  for (const bool is_complete : {false, true}) {
    {
      LogFileMaker maker(&files_, options_, {.number = 3, .size = kSize});
      ASSERT_TRUE(maker.Step().ok());
      if (is_complete) ASSERT_TRUE(Make(&maker).ok());
      EXPECT_EQ(FileCount(), 1u);
    }
    EXPECT_EQ(FileCount(), 0u);
  }
}

TEST_F(LogFileMakerTest, AnErrorIsReturnedAndLeavesNothingBehind) {
  for (const auto operation : {FileOperation::kCreate, FileOperation::kWrite, FileOperation::kSync,
                               FileOperation::kRename, FileOperation::kSyncDirectory}) {
    files_.Fail(operation, 1, absl::InternalError("injected"), /*times=*/1);
    {
      LogFileMaker maker(&files_, options_, {.number = 3, .size = kSize});
      EXPECT_EQ(Make(&maker).status(), absl::InternalError("injected"));
    }
    EXPECT_EQ(FileCount(), 0u);
    files_.ClearFaults();
  }
}

}  // namespace
}  // namespace varve
