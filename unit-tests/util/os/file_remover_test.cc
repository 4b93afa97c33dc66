#include "util/os/file_remover.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

constexpr uint64_t kMebibyte = uint64_t{1} << 20;

std::string Make(const testing::TempDir& directory, const std::string& name, uint64_t size) {
  const std::string path = directory.File(name);
  const auto file = PosixFileSystem()->OpenForWrite(path, /*create=*/true);
  EXPECT_TRUE(file.ok());
  EXPECT_TRUE((*file)->Write(0, std::string(size, 'x')).ok());
  return path;
}

bool Goes(const std::string& path) {
  return testing::Eventually([&] { return !std::filesystem::exists(path); });
}

TEST(FileRemoverTest, ALargeFileIsCutDownInSteps) {
  testing::TempDir directory;
  testing::FaultFileSystem files;
  const std::string path = Make(directory, "large", 9 * kMebibyte);
  FileThread thread;
  FileRemover remover(&files, &thread);
  remover.Remove(path);
  EXPECT_TRUE(Goes(path));
  EXPECT_EQ(files.calls(testing::FileOperation::kTruncate), 4u);
}

TEST(FileRemoverTest, AFileWithAnotherNameStaysWholeUnderIt) {
  testing::TempDir directory;
  const std::string path = Make(directory, "large", 9 * kMebibyte), other = directory.File("other");
  ASSERT_TRUE(PosixFileSystem()->Link(path, other).ok());
  FileThread thread;
  FileRemover remover(PosixFileSystem(), &thread);
  remover.Remove(path);
  EXPECT_TRUE(Goes(path));
  EXPECT_EQ(std::filesystem::file_size(other), 9 * kMebibyte);
}

TEST(FileRemoverTest, RemovesWhatIsLeftWhenItGoes) {
  testing::TempDir directory;
  std::vector<std::string> paths;
  for (int i = 0; i < 20; ++i) paths.push_back(Make(directory, std::to_string(i), 4 * kMebibyte));
  {
    FileThread thread;
    FileRemover remover(PosixFileSystem(), &thread);
    for (const std::string& path : paths) remover.Remove(path);
  }
  for (const std::string& path : paths) EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileRemoverTest, WhatWasAskedForCanBeAwaited) {
  testing::TempDir directory;
  testing::FaultFileSystem files;
  FileThread thread;
  FileRemover remover(&files, &thread);
  remover.AwaitRemovals();  // there are none
  for (int round = 0; round < 5; ++round) {
    std::vector<std::string> paths;
    for (int i = 0; i < 4; ++i)
      paths.push_back(Make(directory, std::to_string(i), (i == 2 ? 9 : 1) * kMebibyte));
    for (const std::string& path : paths) remover.Remove(path);
    remover.Remove(directory.File("missing"));
    remover.AwaitRemovals();
    for (const std::string& path : paths) EXPECT_FALSE(std::filesystem::exists(path)) << path;
  }
  // One that can't be removed is dealt with, too.
  files.Fail(testing::FileOperation::kRemove, 1, absl::InternalError("injected"));
  remover.Remove(Make(directory, "stays", 10));
  remover.AwaitRemovals();
  EXPECT_TRUE(std::filesystem::exists(directory.File("stays")));
}

TEST(FileRemoverTest, GoesOnBehindAFileThatCannotBeCutDown) {
  testing::TempDir directory;
  testing::FaultFileSystem files;
  files.Fail(testing::FileOperation::kTruncate, 1, absl::InternalError("injected"));
  const std::string first = Make(directory, "first", 4 * kMebibyte),
                    second = Make(directory, "second", 10);
  FileThread thread;
  FileRemover remover(&files, &thread);
  remover.Remove(directory.File("missing"));
  remover.Remove(first);
  remover.Remove(second);
  EXPECT_TRUE(Goes(second));
  EXPECT_FALSE(std::filesystem::exists(first));
}

}  // namespace
}  // namespace varve
