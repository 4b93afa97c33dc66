// The bound of a directory: what counts, what is refused, and what gives room back.
#include "util/os/bounded_file_system.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/testing/temp_dir.h"
#include "util/os/forwarding_file_system.h"

namespace varve {
namespace {

using testing::TempDir;

constexpr uint64_t kLimit = 800'000, kReserve = 100'000;

class BoundedFileSystemTest : public ::testing::Test {
 protected:
  BoundedFileSystemTest() { files_.KeepReserve(); }
  std::unique_ptr<File> Create(const std::string& name) {
    absl::StatusOr<std::unique_ptr<File>> file = files_.OpenForWrite(dir_.File(name), true);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  static std::string Bytes(size_t size) { return std::string(size, 'x'); }

  TempDir dir_;
  BoundedFileSystem files_{PosixFileSystem(), dir_.File(""), kLimit};
};

TEST_F(BoundedFileSystemTest, FilesCountWithTheirSizes) {
  ASSERT_EQ(files_.bound().reserve, kReserve);
  const std::unique_ptr<File> file = Create("a.seg");
  ASSERT_TRUE(file->Write(0, Bytes(1000)).ok());
  ASSERT_TRUE(file->Write(500, Bytes(1000)).ok());
  EXPECT_EQ(files_.used(), 1500u);
  ASSERT_TRUE(file->Allocate(1500, 5000).ok());
  EXPECT_EQ(files_.used(), 5000u);
  ASSERT_TRUE(file->WriteDurably(0, Bytes(4096)).ok());
  ASSERT_TRUE(file->Truncate(2000).ok());
  EXPECT_EQ(files_.used(), 2000u);
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 2000u);
  // A second name takes no room, and the first one gives none back.
  ASSERT_TRUE(files_.Link(dir_.File("a.seg"), dir_.File("b.seg")).ok());
  ASSERT_TRUE(files_.Remove(dir_.File("a.seg")).ok());
  EXPECT_EQ(files_.used(), 2000u);
  ASSERT_TRUE(files_.Remove(dir_.File("b.seg")).ok());
  EXPECT_EQ(files_.used(), 0u);
}

TEST_F(BoundedFileSystemTest, TheLimitMovesAndTheReserveWithIt) {
  const std::unique_ptr<File> log = Create("000001.log.tmp");
  ASSERT_TRUE(log->Write(0, Bytes(kLimit - kReserve)).ok());
  EXPECT_TRUE(files_.IsTight());
  EXPECT_TRUE(absl::IsResourceExhausted(log->Write(kLimit - kReserve, "x")));
  ASSERT_TRUE(files_.SetLimit(2 * kLimit).ok());
  EXPECT_EQ(files_.bound().reserve, 2 * kReserve);
  EXPECT_FALSE(files_.IsTight());
  ASSERT_TRUE(log->Write(kLimit - kReserve, Bytes(kLimit - kReserve)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(log->Write(2 * (kLimit - kReserve), "x")));
  // Of 1,500,000 bytes the reserve is 187,500, and half of it has to be left.
  EXPECT_TRUE(absl::IsFailedPrecondition(files_.SetLimit(1'490'000)));
  EXPECT_EQ(files_.bound().limit, 2 * kLimit);
  ASSERT_TRUE(files_.SetLimit(1'500'000).ok());
  EXPECT_TRUE(files_.IsTight());
  const std::unique_ptr<File> segment = Create("1.seg");
  EXPECT_TRUE(segment->Write(0, Bytes(100'000)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(segment->Write(100'000, "x"))) << "nothing is left";
  EXPECT_TRUE(files_.SetLimit(1'500'001).ok()) << "it may always rise";
}

TEST_F(BoundedFileSystemTest, WhatDoesNotFitIsRefusedAndTheLogFirst) {
  const std::unique_ptr<File> log = Create("000001.log.tmp"), segment = Create("1.seg");
  ASSERT_TRUE(log->Write(0, Bytes(kLimit - kReserve)).ok());
  EXPECT_TRUE(files_.IsTight());
  const absl::Status refused = log->Allocate(kLimit - kReserve, kLimit);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(std::string(refused.message()).find("max-disk-bytes"), std::string::npos) << refused;
  EXPECT_TRUE(segment->Write(0, Bytes(kReserve)).ok()) << "the reserve is for it";
  EXPECT_TRUE(absl::IsResourceExhausted(segment->Write(kReserve, "x")));
  EXPECT_TRUE(log->Write(0, Bytes(1000)).ok()) << "it takes no more room";
  EXPECT_EQ(files_.used(), kLimit);
  EXPECT_EQ(files_.FreeSpace(dir_.File("1.seg")).value(), 0u);
  // A file that takes the place of another one gives back what that had.
  ASSERT_TRUE(Create("2.seg") != nullptr);
  ASSERT_TRUE(files_.Rename(dir_.File("2.seg"), dir_.File("1.seg")).ok());
  EXPECT_EQ(files_.used(), kLimit - kReserve);
  ASSERT_TRUE(Create("000001.log.tmp") != nullptr) << "it is emptied";
  EXPECT_EQ(files_.used(), 0u);
}

TEST_F(BoundedFileSystemTest, ALogMayTakeTheReserveUntilTheStoreIsOpen) {
  BoundedFileSystem files(PosixFileSystem(), dir_.File(""), kLimit);
  const std::unique_ptr<File> segment = *files.OpenForWrite(dir_.File("1.seg"), true);
  ASSERT_TRUE(segment->Write(0, Bytes(kLimit - kReserve)).ok());
  ASSERT_TRUE(files.IsTight());
  const std::unique_ptr<File> log = *files.OpenForWrite(dir_.File("000001.log.tmp"), true);
  EXPECT_TRUE(log->Write(0, Bytes(kReserve / 2)).ok());
  const absl::Status beyond = log->Allocate(kReserve / 2, kReserve + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(beyond)) << beyond;
  EXPECT_TRUE(std::string(beyond.message()).ends_with("to open the store: raise the limit"))
      << beyond;
  files.KeepReserve();
  const absl::Status refused = log->Allocate(kReserve / 2, kReserve / 2 + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(std::string(refused.message()).find("delete data"), std::string::npos) << refused;
  EXPECT_TRUE(log->Write(0, Bytes(1000)).ok()) << "it takes no more room";
  EXPECT_TRUE(segment->Write(kLimit - kReserve, "x").ok());
}

TEST_F(BoundedFileSystemTest, OnlyLogsOfTheDirectoryItselfLeaveTheReserve) {
  ASSERT_TRUE(files_.CreateDirectory(dir_.File("access")).ok());
  ASSERT_TRUE(Create("1.seg")->Write(0, Bytes(kLimit - kReserve)).ok());
  for (const char* name : {"access/000001.log", "access/000002.log.tmp"}) {
    const absl::Status written = Create(name)->Write(0, "x");
    EXPECT_TRUE(written.ok()) << name << ": " << written;
  }
  for (const char* name : {"000001.log", "000002.log.tmp", "/000003.log"}) {
    const absl::Status written = Create(name)->Write(0, "x");
    EXPECT_TRUE(absl::IsResourceExhausted(written)) << name << ": " << written;
  }
}

// The next file of the log grows through a descriptor of its own (LogFiles).
TEST_F(BoundedFileSystemTest, WhatAnotherDescriptorGrewTakesItsRoomOnce) {
  const std::unique_ptr<File> log = Create("000002.log");
  ASSERT_TRUE(log->Write(0, Bytes(1000)).ok());
  absl::StatusOr<std::unique_ptr<File>> other =
      files_.OpenForWrite(dir_.File("000002.log"), /*create=*/false);
  ASSERT_TRUE(other.ok()) << other.status();
  constexpr uint64_t kGrown = kLimit - kReserve;
  ASSERT_TRUE((*other)->Allocate(1000, kGrown).ok());
  EXPECT_EQ(files_.used(), kGrown);
  const absl::Status written = log->Write(0, Bytes(kGrown));
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_EQ(files_.used(), kGrown);
  EXPECT_TRUE(absl::IsResourceExhausted(log->Write(kGrown, "x")));
}

TEST_F(BoundedFileSystemTest, WhatAnotherDescriptorGrewIsGivenBackWhenTheFileShrinks) {
  const std::unique_ptr<File> log = Create("000002.log");
  ASSERT_TRUE(log->Write(0, Bytes(1000)).ok());
  absl::StatusOr<std::unique_ptr<File>> other =
      files_.OpenForWrite(dir_.File("000002.log"), /*create=*/false);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE((*other)->Allocate(1000, 5000).ok());
  ASSERT_TRUE(log->Truncate(500).ok());
  EXPECT_EQ(files_.used(), 500u);
}

TEST_F(BoundedFileSystemTest, SpareFilesDoNotTakeTheReserve) {
  ASSERT_TRUE(Create("1.seg")->Write(0, Bytes(kLimit - kReserve)).ok());
  EXPECT_TRUE(files_.IsTight());
  ASSERT_TRUE(files_.Rename(dir_.File("1.seg"), dir_.File("1.spare")).ok());
  EXPECT_FALSE(files_.IsTight());
  EXPECT_EQ(files_.used(), kLimit - kReserve);
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.needed(), 0u);
  ASSERT_TRUE(files_.Rename(dir_.File("1.spare"), dir_.File("2.log.tmp")).ok());
  EXPECT_TRUE(files_.IsTight());
}

TEST_F(BoundedFileSystemTest, FilesElsewhereDoNotCount) {
  TempDir other;
  const std::unique_ptr<File> file = *files_.OpenForWrite(other.File("a"), true);
  ASSERT_TRUE(file->Write(0, Bytes(2 * kLimit)).ok());
  EXPECT_EQ(files_.used(), 0u);
}

// A file system in which something happens beside a call.
class EventfulFileSystem : public ForwardingFileSystem {
 public:
  EventfulFileSystem() : ForwardingFileSystem(PosixFileSystem()) {}

  // Happen once each, when the names of a directory have been read, and when a file has gone.
  std::function<void()> listed;
  std::function<void()> removed;

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    absl::StatusOr<std::vector<std::string>> names = base_->List(path);
    if (const auto happens = std::exchange(listed, nullptr)) happens();
    return names;
  }
  absl::Status Remove(const std::string& path) override {
    const absl::Status status = base_->Remove(path);
    if (const auto happens = std::exchange(removed, nullptr)) happens();
    return status;
  }
};

class ChangingDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(files_.CreateDirectory(dir_.File("below")).ok());
    for (const auto& [name, size] : {std::pair("a.seg", 1000), std::pair("b.seg", 20'000)})
      ASSERT_TRUE(Create(name)->Write(0, std::string(static_cast<size_t>(size), 'x')).ok());
    ASSERT_EQ(files_.used(), 21'000u);
  }
  std::unique_ptr<File> Create(const std::string& name) {
    absl::StatusOr<std::unique_ptr<File>> file = files_.OpenForWrite(dir_.File(name), true);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  void Remove(const std::string& name) { ASSERT_TRUE(files_.Remove(dir_.File(name)).ok()); }

  TempDir dir_;
  EventfulFileSystem base_;
  BoundedFileSystem files_{&base_, dir_.File(""), kLimit};
};

TEST_F(ChangingDirectoryTest, WhatGoesBeforeTheWalkLooksAtItIsGivenBackOnce) {
  base_.listed = [&] { Remove("b.seg"); };
  ASSERT_TRUE(files_.Measure().ok());
  ASSERT_TRUE(base_.listed == nullptr);
  EXPECT_EQ(files_.used(), 1000u);
}

TEST_F(ChangingDirectoryTest, WhatGoesAfterTheWalkLookedAtItIsGivenBackOnce) {
  base_.listed = [&] { base_.listed = [&] { Remove("b.seg"); }; };  // with those below
  ASSERT_TRUE(files_.Measure().ok());
  ASSERT_TRUE(base_.listed == nullptr);
  EXPECT_EQ(files_.used(), 1000u);
}

TEST_F(ChangingDirectoryTest, WhatIsAboutToBeGivenBackIsGivenBackOnce) {
  base_.removed = [&] { EXPECT_TRUE(files_.Measure().ok()); };
  Remove("b.seg");
  EXPECT_EQ(files_.used(), 1000u);
}

TEST_F(ChangingDirectoryTest, WhatShrinksOrIsReplacedMeanwhileIsGivenBackOnce) {
  const std::unique_ptr<File> file = *files_.OpenForWrite(dir_.File("b.seg"), false);
  base_.listed = [&] { ASSERT_TRUE(file->Truncate(500).ok()); };
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 1500u);
  base_.listed = [&] { ASSERT_TRUE(Create("a.seg") != nullptr); };
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 500u);
}

TEST_F(ChangingDirectoryTest, WhatGrowsMeanwhileCountsOnce) {
  const std::unique_ptr<File> file = Create("c.seg");
  base_.listed = [&] { ASSERT_TRUE(file->Write(0, std::string(500, 'x')).ok()); };
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 21'500u);
}

TEST_F(ChangingDirectoryTest, WhatMovesMeanwhileCountsOnce) {
  const auto path = [&](const char* name) { return dir_.File(name); };
  ASSERT_TRUE(files_.Rename(path("b.seg"), path("below/b.seg")).ok());
  // The walk has read the names of the upper directory, and then looks into the one below.
  base_.listed = [&] { ASSERT_TRUE(files_.Rename(path("below/b.seg"), path("b.seg")).ok()); };
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 21'000u);
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 21'000u);
}

TEST_F(ChangingDirectoryTest, WhatBecomesSpareOrIsUsedAgainMeanwhileCountsAsWhatItIs) {
  const std::string used = dir_.File("b.seg"), spare = dir_.File("b.spare");
  base_.listed = [&] { ASSERT_TRUE(files_.Rename(used, spare).ok()); };  // the walk misses it
  ASSERT_TRUE(files_.Measure().ok());
  ASSERT_TRUE(base_.listed == nullptr);
  EXPECT_EQ(files_.needed(), 1000u);
  base_.listed = [&] {  // the walk has looked at it once it comes to those below
    base_.listed = [&] { ASSERT_TRUE(files_.Rename(spare, used).ok()); };
  };
  ASSERT_TRUE(files_.Measure().ok());
  ASSERT_TRUE(base_.listed == nullptr);
  EXPECT_EQ(files_.needed(), 21'000u);
}

TEST_F(ChangingDirectoryTest, WhatOthersChangeIsFound) {
  ASSERT_TRUE(PosixFileSystem()->Remove(dir_.File("b.seg")).ok());
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 1000u);
  const std::unique_ptr<File> file = *PosixFileSystem()->OpenForWrite(dir_.File("d"), true);
  ASSERT_TRUE(file->Write(0, std::string(70'000, 'x')).ok());
  base_.listed = [&] { Remove("a.seg"); };
  ASSERT_TRUE(files_.Measure().ok());
  ASSERT_TRUE(files_.Measure().ok());
  EXPECT_EQ(files_.used(), 70'000u);
}

}  // namespace
}  // namespace varve
