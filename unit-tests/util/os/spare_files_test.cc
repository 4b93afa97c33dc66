#include "util/os/spare_files.h"

#include <gtest/gtest.h>

#include <atomic>
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

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

bool Exists(const std::string& path) { return std::filesystem::exists(path); }

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class SpareFilesTest : public ::testing::Test {
 protected:
  std::string Make(const std::string& name, uint64_t size) {
    const std::string path = directory_.File(name);
    const auto file = files_.OpenForWrite(path, /*create=*/true);
    EXPECT_TRUE(file.ok());
    EXPECT_TRUE((*file)->Write(0, std::string(size, 'x')).ok());
    return path;
  }
  // Makes a file a spare, and returns its new path.
  std::string Keep(const std::string& name, uint64_t size) {
    const std::string path = Make(name, size);
    EXPECT_TRUE(spares_.Keep(path, size));
    EXPECT_FALSE(Exists(path));
    return path + ".spare";
  }

  testing::TempDir directory_;
  testing::FaultFileSystem files_;
  SpareFiles spares_{&files_, 32 * kMebibyte};
};

TEST_F(SpareFilesTest, AWriterWritesOverASpareAndCutsOffWhatIsLeft) {
  const std::string spare = Keep("old", 9 * kMebibyte);
  const std::string path = directory_.File("new"), bytes = std::string(kMebibyte, 'y') + "end";
  {
    auto writer = FileWriter::Create(&files_, path, &spares_, 5 * kMebibyte);
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE(Exists(spare));
    EXPECT_FALSE(spares_.AreClean());
    ASSERT_TRUE((*writer)->Append(bytes).ok());
    EXPECT_EQ(std::filesystem::file_size(path), 9 * kMebibyte);
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_TRUE(spares_.AreClean());
    EXPECT_EQ(files_.calls(testing::FileOperation::kTruncate), 4u);  // in steps of 2 MiB
    (*writer)->Keep();
  }
  EXPECT_EQ(Contents(path), bytes);
  EXPECT_EQ(spares_.expiry(), kEndOfTime);
}

TEST_F(SpareFilesTest, AWriterMayWriteMoreThanTheSpareHeld) {
  Keep("old", kMebibyte);
  const std::string path = directory_.File("new"), bytes(3 * kMebibyte + 1, 'y');
  auto writer = FileWriter::Create(&files_, path, &spares_, kMebibyte);
  ASSERT_TRUE(writer.ok() && (*writer)->Append(bytes).ok() && (*writer)->Finish().ok());
  (*writer)->Keep();
  EXPECT_EQ(Contents(path), bytes);
  EXPECT_EQ(files_.calls(testing::FileOperation::kTruncate), 0u);
}

TEST_F(SpareFilesTest, AWriterThatGivesUpLeavesNothing) {
  Keep("old", kMebibyte);
  const std::string path = directory_.File("new");
  {
    auto writer = FileWriter::Create(&files_, path, &spares_, kMebibyte);
    ASSERT_TRUE(writer.ok() && (*writer)->Append("half").ok());
  }
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(spares_.AreClean());
}

TEST_F(SpareFilesTest, ASpareThatCannotBeCutDownIsAnErrorOfItsWriter) {
  Keep("old", 2 * kMebibyte);
  const std::string path = directory_.File("new");
  {
    auto writer = FileWriter::Create(&files_, path, &spares_, kMebibyte);
    ASSERT_TRUE(writer.ok() && (*writer)->Append("half").ok());
    files_.Fail(testing::FileOperation::kTruncate, 1, absl::InternalError("injected"));
    EXPECT_EQ((*writer)->Finish(), absl::InternalError("injected"));
    EXPECT_FALSE(spares_.AreClean());
  }
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(spares_.AreClean());
}

TEST_F(SpareFilesTest, TheNearestSizeIsTakenAndNoneThatIsMuchTooLarge) {
  const std::string small = Keep("small", kMebibyte), middle = Keep("middle", 3 * kMebibyte),
                    large = Keep("large", 8 * kMebibyte);
  EXPECT_EQ(spares_.Take(directory_.File("a"), 4 * kMebibyte).old_size, 3 * kMebibyte);
  EXPECT_FALSE(Exists(middle));
  EXPECT_EQ(spares_.Take(directory_.File("b"), 4 * kMebibyte).old_size, kMebibyte);
  EXPECT_FALSE(Exists(small));
  EXPECT_EQ(spares_.Take(directory_.File("c"), 3 * kMebibyte).file, nullptr);
  EXPECT_TRUE(Exists(large));
  spares_.IsClean();
  spares_.IsClean();
}

TEST_F(SpareFilesTest, SparesTakeNoMoreThanTheirBound) {
  Keep("first", 20 * kMebibyte);
  const std::string second = Make("second", 20 * kMebibyte), third = Make("third", 0);
  EXPECT_FALSE(spares_.Keep(second, 20 * kMebibyte));
  EXPECT_TRUE(Exists(second));
  EXPECT_FALSE(spares_.Keep(third, 0));
  Keep("fourth", 12 * kMebibyte);
}

TEST_F(SpareFilesTest, WhileClosedNothingIsKeptOrTaken) {
  const std::string spare = Keep("spare", kMebibyte), other = Make("other", kMebibyte);
  EXPECT_EQ(spares_.Close(), std::vector<std::string>{spare});
  EXPECT_FALSE(spares_.Keep(other, kMebibyte));
  EXPECT_EQ(spares_.Take(directory_.File("new"), kMebibyte).file, nullptr);
  EXPECT_TRUE(spares_.Close().empty());
  spares_.Open();
  EXPECT_FALSE(spares_.Keep(other, kMebibyte));
  spares_.Open();
  EXPECT_TRUE(spares_.Keep(other, kMebibyte));
}

TEST_F(SpareFilesTest, SparesExpireTwoSecondsAfterTheLastUse) {
  Keep("first", kMebibyte);
  const SteadyTime expiry = spares_.expiry();
  EXPECT_GT(expiry, SteadyNow() + absl::Seconds(1));
  const std::string second = Keep("second", 8 * kMebibyte);
  EXPECT_GE(spares_.expiry(), expiry);
  EXPECT_EQ(spares_.Take(directory_.File("new"), kMebibyte).old_size, kMebibyte);
  spares_.IsClean();
  const SteadyTime last = spares_.expiry();
  EXPECT_EQ(spares_.TakeExpired(last - std::chrono::nanoseconds(1)), "");
  EXPECT_EQ(spares_.TakeExpired(last), second);
  EXPECT_EQ(spares_.TakeExpired(last), "");
}

TEST_F(SpareFilesTest, AFileThatCannotBeRenamedIsNoSpare) {
  const std::string path = Make("stays", kMebibyte);
  files_.Fail(testing::FileOperation::kRename, 1, absl::InternalError("injected"));
  EXPECT_FALSE(spares_.Keep(path, kMebibyte));
  EXPECT_TRUE(Exists(path));
  // A spare that cannot be had goes, and the writer's file is new.
  const std::string spare = Keep("spare", kMebibyte), made = directory_.File("new");
  files_.Fail(testing::FileOperation::kRename, 1, absl::InternalError("injected"));
  auto writer = FileWriter::Create(&files_, made, &spares_, kMebibyte);
  ASSERT_TRUE(writer.ok());
  EXPECT_FALSE(Exists(spare));
  EXPECT_EQ(std::filesystem::file_size(made), 0u);
  EXPECT_TRUE(spares_.AreClean());
}

class RemoverWithSparesTest : public SpareFilesTest {
 protected:
  FileThread thread_;
  FileRemover remover_{&files_, &thread_, 32 * kMebibyte};
};

TEST_F(RemoverWithSparesTest, WhatIsRemovedBecomesASpareUntilNobodyWantsIt) {
  const std::string path = Make("old", 3 * kMebibyte), spare = path + ".spare";
  remover_.Remove(path);
  EXPECT_TRUE(testing::Eventually([&] { return Exists(spare); }));
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(testing::Eventually([&] { return !Exists(spare); }));
}

TEST_F(RemoverWithSparesTest, WhatIsNotToBeUsedAgainIsRemoved) {
  const std::string damaged = Make("damaged", 3 * kMebibyte), whole = Make("whole", 3 * kMebibyte),
                    other = directory_.File("other");
  ASSERT_TRUE(files_.Link(whole, other).ok());
  const uint64_t renames = files_.calls(testing::FileOperation::kRename);
  remover_.Remove(damaged, FileRemover::Reuse::kNever);
  remover_.Remove(whole);  // has another name, under which it stays
  EXPECT_TRUE(testing::Eventually([&] { return !Exists(damaged) && !Exists(whole); }));
  EXPECT_EQ(files_.calls(testing::FileOperation::kRename), renames);
  EXPECT_EQ(std::filesystem::file_size(other), 3 * kMebibyte);
}

TEST_F(RemoverWithSparesTest, NothingIsLeftOnceRemovalsWereAwaited) {
  const std::string first = Make("first", 3 * kMebibyte), second = Make("second", 3 * kMebibyte);
  remover_.Remove(first);
  EXPECT_TRUE(testing::Eventually([&] { return Exists(first + ".spare"); }));
  remover_.Remove(second);
  remover_.AwaitRemovals();
  for (const std::string& path : {first, second}) {
    EXPECT_FALSE(Exists(path));
    EXPECT_FALSE(Exists(path + ".spare"));
  }
}

TEST_F(RemoverWithSparesTest, RemovalsAreNotOverWhileASpareIsWrittenOver) {
  remover_.Remove(Make("old", kMebibyte));
  EXPECT_TRUE(testing::Eventually([&] { return Exists(directory_.File("old.spare")); }));
  auto writer = FileWriter::Create(&files_, directory_.File("new"), remover_.spares(), kMebibyte);
  ASSERT_TRUE(writer.ok() && (*writer)->Append("new bytes").ok());
  std::atomic<bool> is_over = false;
  std::thread waiting([&] {
    remover_.AwaitRemovals();
    is_over = true;
  });
  EXPECT_FALSE(is_over);
  ASSERT_TRUE((*writer)->Finish().ok());
  (*writer)->Keep();
  waiting.join();
  EXPECT_EQ(Contents(directory_.File("new")), "new bytes");
}

}  // namespace
}  // namespace varve
