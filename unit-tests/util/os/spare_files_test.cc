#include "util/os/spare_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/os/file_remover.h"
#include "util/os/file_thread.h"
#include "util/os/file_writer.h"

namespace varve {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

bool Exists(const std::string& path) { return std::filesystem::exists(path); }

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A file system with room for all spares, however little the temporary directory has.
class RoomyFileSystem : public testing::FaultFileSystem {
 public:
  absl::StatusOr<uint64_t> FreeSpace(const std::string&) override { return uint64_t{1} << 40; }
};

class SpareFilesTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name, uint64_t size) {
    const std::string path = directory_.File(name);
    const auto file = files_.OpenForWrite(path, /*create=*/true);
    EXPECT_TRUE(file.ok());
    EXPECT_TRUE((*file)->Write(0, std::string(size, 'x')).ok());
    return path;
  }
  bool TryToKeep(const std::string& path) {
    const auto file = files_.OpenForWrite(path, /*create=*/false);
    EXPECT_TRUE(file.ok());
    return spares_.Keep(path, **file, (*file)->Size().value());
  }
  // Makes a file a spare, and returns its new path.
  std::string Keep(const std::string& name, uint64_t size) {
    const std::string path = Make(name, size);
    EXPECT_TRUE(TryToKeep(path));
    EXPECT_FALSE(Exists(path));
    return path + ".spare";
  }

  testing::TempDir directory_;
  RoomyFileSystem files_;
  SpareFiles spares_{&files_, 32 * kMiB};
};

TEST_F(SpareFilesTest, AWriterWritesOverASpareAndCutsOffWhatIsLeft) {
  const std::string spare = Keep("old", 9 * kMiB);
  const std::string path = directory_.File("new"), bytes = std::string(kMiB, 'y') + "end";
  {
    auto writer = FileWriter::Create(&files_, path, &spares_, 5 * kMiB);
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE(Exists(spare));
    EXPECT_FALSE(spares_.AreClean());
    ASSERT_TRUE((*writer)->Append(bytes).ok());
    EXPECT_EQ(std::filesystem::file_size(path), 9 * kMiB);
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_TRUE(spares_.AreClean());
    EXPECT_EQ(files_.calls(testing::FileOperation::kTruncate), 4u);  // in steps of 2 MiB
    (*writer)->Keep();
  }
  EXPECT_EQ(Contents(path), bytes);
  EXPECT_EQ(spares_.expiry(), kEndOfTime);
}

TEST_F(SpareFilesTest, AWriterMayWriteMoreThanTheSpareHeld) {
  Keep("old", kMiB);
  const std::string path = directory_.File("new"), bytes(3 * kMiB + 1, 'y');
  auto writer = FileWriter::Create(&files_, path, &spares_, kMiB);
  ASSERT_TRUE(writer.ok() && (*writer)->Append(bytes).ok() && (*writer)->Finish().ok());
  (*writer)->Keep();
  EXPECT_EQ(Contents(path), bytes);
  EXPECT_EQ(files_.calls(testing::FileOperation::kTruncate), 0u);
}

TEST_F(SpareFilesTest, AWriterThatGivesUpLeavesNothing) {
  Keep("old", kMiB);
  const std::string path = directory_.File("new");
  {
    auto writer = FileWriter::Create(&files_, path, &spares_, kMiB);
    ASSERT_TRUE(writer.ok() && (*writer)->Append("half").ok());
  }
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(spares_.AreClean());
}

TEST_F(SpareFilesTest, ASpareThatCannotBeCutDownIsAnErrorOfItsWriter) {
  Keep("old", 2 * kMiB);
  const std::string path = directory_.File("new");
  {
    auto writer = FileWriter::Create(&files_, path, &spares_, kMiB);
    ASSERT_TRUE(writer.ok() && (*writer)->Append("half").ok());
    files_.Fail(testing::FileOperation::kTruncate, 1, absl::InternalError("injected"));
    EXPECT_EQ((*writer)->Finish(), absl::InternalError("injected"));
    EXPECT_FALSE(spares_.AreClean());
  }
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(spares_.AreClean());
}

TEST_F(SpareFilesTest, TheNearestSizeIsTakenAndNoneThatIsMuchTooLarge) {
  const std::string small = Keep("small", kMiB), middle = Keep("middle", 3 * kMiB),
                    large = Keep("large", 8 * kMiB);
  EXPECT_EQ(spares_.Take(directory_.File("a"), 4 * kMiB).old_size, 3 * kMiB);
  EXPECT_FALSE(Exists(middle));
  EXPECT_EQ(spares_.Take(directory_.File("b"), 4 * kMiB).old_size, kMiB);
  EXPECT_FALSE(Exists(small));
  EXPECT_EQ(spares_.Take(directory_.File("c"), 3 * kMiB).file, nullptr);
  EXPECT_TRUE(Exists(large));
  spares_.IsClean();
  spares_.IsClean();
}

TEST_F(SpareFilesTest, SparesTakeNoMoreThanTheirBoundAndTheOldestMakeRoom) {
  const std::string first = Keep("first", 20 * kMiB), second = Keep("second", 10 * kMiB);
  EXPECT_EQ(spares_.TakeExpired(SteadyNow()), "");
  const std::string third = Keep("third", 20 * kMiB);
  EXPECT_LE(spares_.expiry(), SteadyNow());
  EXPECT_EQ(spares_.TakeExpired(SteadyNow()), first);
  EXPECT_EQ(spares_.TakeExpired(SteadyNow()), "");
  EXPECT_EQ(spares_.Close(), (std::vector<std::string>{second, third}));
  spares_.Open();
  const std::string huge = Make("huge", 33 * kMiB), empty = Make("empty", 0);
  EXPECT_FALSE(TryToKeep(huge));
  EXPECT_FALSE(TryToKeep(empty));
  EXPECT_TRUE(Exists(huge) && Exists(empty));
}

TEST_F(SpareFilesTest, AFileThatHasGotAnotherNameIsNotWrittenOver) {
  const std::string path = Make("old", kMiB), other = directory_.File("other");
  ASSERT_TRUE(files_.Link(path, other).ok());
  EXPECT_TRUE(TryToKeep(path));
  EXPECT_FALSE(Exists(path) || Exists(path + ".spare"));
  EXPECT_EQ(spares_.Take(directory_.File("new"), kMiB).file, nullptr);
  EXPECT_EQ(std::filesystem::file_size(other), kMiB);
}

TEST_F(SpareFilesTest, WhileClosedNothingIsKeptOrTaken) {
  const std::string spare = Keep("spare", kMiB), other = Make("other", kMiB);
  EXPECT_EQ(spares_.Close(), std::vector<std::string>{spare});
  EXPECT_FALSE(TryToKeep(other));
  EXPECT_EQ(spares_.Take(directory_.File("new"), kMiB).file, nullptr);
  EXPECT_TRUE(spares_.Close().empty());
  spares_.Open();
  EXPECT_FALSE(TryToKeep(other));
  spares_.Open();
  EXPECT_TRUE(TryToKeep(other));
}

TEST_F(SpareFilesTest, SparesExpireTwoSecondsAfterTheLastUseAndAfterHalfAMinute) {
  const SteadyTime before = SteadyNow();
  const std::string first = Keep("first", 8 * kMiB);
  const SteadyTime expiry = spares_.expiry();
  EXPECT_GE(expiry, before + absl::Seconds(2));
  const std::string second = Keep("second", kMiB), third = Keep("third", 8 * kMiB);
  EXPECT_GE(spares_.expiry(), expiry);
  EXPECT_EQ(spares_.Take(directory_.File("new"), kMiB).old_size, kMiB);
  spares_.IsClean();
  const SteadyTime last = spares_.expiry();
  EXPECT_GE(last, expiry);
  EXPECT_EQ(spares_.TakeExpired(last - std::chrono::nanoseconds(1)), "");
  EXPECT_EQ(spares_.TakeExpired(last), first);
  EXPECT_EQ(spares_.TakeExpired(last), third);
  EXPECT_EQ(spares_.TakeExpired(last), "");
}

TEST_F(SpareFilesTest, AFileThatCannotBeRenamedIsNoSpare) {
  const std::string path = Make("stays", kMiB);
  files_.Fail(testing::FileOperation::kRename, 1, absl::InternalError("injected"), /*times=*/1);
  EXPECT_FALSE(TryToKeep(path));
  EXPECT_TRUE(Exists(path));
  // A spare that cannot be had goes, and the writer's file is new.
  const std::string spare = Keep("spare", kMiB), made = directory_.File("new");
  files_.Fail(testing::FileOperation::kRename, 1, absl::InternalError("injected"), /*times=*/1);
  auto writer = FileWriter::Create(&files_, made, &spares_, kMiB);
  ASSERT_TRUE(writer.ok());
  EXPECT_FALSE(Exists(spare));
  EXPECT_EQ(std::filesystem::file_size(made), 0u);
  EXPECT_TRUE(spares_.AreClean());
}

class RemoverWithSparesTest : public SpareFilesTest {
 protected:
  // Has the remover make a file of so many bytes a spare.
  void RemoveToSpare(const std::string& name, uint64_t size) {
    const int renames = Renames();
    remover_.Remove(Make(name, size));
    EXPECT_TRUE(testing::Eventually([&] { return Renames() > renames; }));
  }
  int Renames() { return static_cast<int>(files_.calls(testing::FileOperation::kRename)); }

  FileThread thread_;
  FileRemover remover_{&files_, &thread_, 32 * kMiB};
};

TEST_F(RemoverWithSparesTest, WhatIsRemovedBecomesASpareUntilNobodyWantsIt) {
  RemoveToSpare("old", 3 * kMiB);
  EXPECT_TRUE(testing::Eventually(
      [&] { return !Exists(directory_.File("old")) && !Exists(directory_.File("old.spare")); }));
}

TEST_F(RemoverWithSparesTest, WhatIsNotToBeUsedAgainIsRemoved) {
  const std::string damaged = Make("damaged", 3 * kMiB), whole = Make("whole", 3 * kMiB),
                    other = directory_.File("other");
  ASSERT_TRUE(files_.Link(whole, other).ok());
  const int renames = Renames();
  remover_.Remove(damaged, FileRemover::Reuse::kNever);
  remover_.Remove(whole);  // has another name, under which it stays
  EXPECT_TRUE(testing::Eventually([&] { return !Exists(damaged) && !Exists(whole); }));
  EXPECT_EQ(Renames(), renames);
  EXPECT_EQ(std::filesystem::file_size(other), 3 * kMiB);
}

TEST_F(RemoverWithSparesTest, NothingIsLeftOnceRemovalsWereAwaited) {
  RemoveToSpare("first", 3 * kMiB);
  remover_.Remove(Make("second", 3 * kMiB));
  remover_.AwaitRemovals();
  for (const char* name : {"first", "first.spare", "second", "second.spare"})
    EXPECT_FALSE(Exists(directory_.File(name))) << name;
}

TEST_F(RemoverWithSparesTest, WithoutSparesAllIsRemoved) {
  const FileRemover::WithoutSpares without(&remover_);
  const int renames = Renames();
  const std::string path = Make("old", 3 * kMiB);
  remover_.Remove(path);
  EXPECT_TRUE(testing::Eventually([&] { return !Exists(path); }));
  EXPECT_EQ(Renames(), renames);
}

TEST_F(RemoverWithSparesTest, RemovalsAreNotOverWhileASpareIsWrittenOver) {
  RemoveToSpare("old", kMiB);
  auto writer = FileWriter::Create(&files_, directory_.File("new"), remover_.spares(), kMiB);
  ASSERT_TRUE(writer.ok() && (*writer)->Append("new bytes").ok());
  if (remover_.spares()->AreClean()) GTEST_SKIP() << "the spare expired before it was taken";
  // The waiting thread removes this one once it has closed the spares, and then waits.
  const std::string second = Make("second", kMiB);
  bool were_clean = false;
  std::thread waiting([&] {
    remover_.Remove(second, FileRemover::Reuse::kNever);
    remover_.AwaitRemovals();
    were_clean = remover_.spares()->AreClean();
  });
  EXPECT_TRUE(testing::Eventually([&] { return !Exists(second); }));
  ASSERT_TRUE((*writer)->Finish().ok());
  (*writer)->Keep();
  waiting.join();
  EXPECT_TRUE(were_clean);
  EXPECT_EQ(Contents(directory_.File("new")), "new bytes");
}

}  // namespace
}  // namespace varve
