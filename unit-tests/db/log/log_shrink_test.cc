#include "db/log/log_shrink.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/fault_file_system.h"

namespace varve {
namespace {

using testing::FileOperation;
using testing::LogUser;
using testing::Replay;
using testing::Replayed;

constexpr size_t kWholeFileSize = 1u << 20;

class LogShrinkTest : public ::testing::Test {
 protected:
  // Commits so many records of 5 bytes, each in a page of its own, and closes the log.
  void Write(int records) {
    LogUser user(dir_.path(), kWholeFileSize, /*last=*/0, /*file_number=*/1, &fs_);
    user.Open();
    for (int i = 0; i < records; ++i) ASSERT_TRUE(user.Commit("value").ok());
    const absl::StatusOr<LogEnd> end = user.log().Close();
    ASSERT_TRUE(end.ok()) << end.status();
    end_ = *end;
  }
  std::string Path() const { return dir_.File(LogFileName(1)); }
  uint64_t Size() const { return std::filesystem::file_size(Path()); }
  size_t FileCount() const { return PosixFileSystem()->List(dir_.path())->size(); }

  testing::TempDir dir_;
  testing::FaultFileSystem fs_;
  LogEnd end_;
};

TEST_F(LogShrinkTest, AClosedLogTakesWhatItsRecordsTake) {
  Write(20);
  EXPECT_EQ(Size(), LogPageAlign(end_.offset));
  EXPECT_LT(Size(), kWholeFileSize / 8);
  EXPECT_EQ(FileCount(), 1u);
  const Replayed replayed = Replay(dir_.path(), 0, {end_});
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 20u);
  EXPECT_EQ(replayed.recovery.torn_bytes, 0u);
}

TEST_F(LogShrinkTest, ALogWithoutRecordsTakesAPage) {
  Write(0);
  EXPECT_EQ(Size(), kLogPageSize);
  EXPECT_TRUE(Replay(dir_.path(), 0, {end_}).status.ok());
  EXPECT_TRUE(Replay(dir_.path()).status.ok());
}

// The manifest may not name the end any more, or not yet.
TEST_F(LogShrinkTest, AShrunkFileIsWholeAndOneThatLostItsEndIsDamaged) {
  Write(20);
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 20u);
  std::filesystem::resize_file(Path(), Size() - kLogPageSize);
  const Replayed cut = Replay(dir_.path());
  EXPECT_TRUE(absl::IsDataLoss(cut.status)) << cut.status;
}

TEST_F(LogShrinkTest, AFileThatIsFullIsLeftAsItIs) {
  Write(230);
  EXPECT_EQ(Size(), kWholeFileSize);
  EXPECT_EQ(Replay(dir_.path(), 0, {end_}).batches.size(), 230u);
}

TEST_F(LogShrinkTest, WithoutRoomForTheCopyTheFileStays) {
  {
    LogUser user(dir_.path(), kWholeFileSize, 0, 1, &fs_);
    user.Open();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(user.Commit("value").ok());
    ASSERT_TRUE(user.log().PrepareToLeaveFile().ok());  // nothing is made any more
    fs_.Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("the disk is full"));
    ASSERT_TRUE(user.log().Close().ok());
  }
  EXPECT_EQ(Size(), kWholeFileSize);
  EXPECT_EQ(FileCount(), 1u);
  EXPECT_EQ(Replay(dir_.path()).batches.size(), 20u);
}

}  // namespace
}  // namespace varve
