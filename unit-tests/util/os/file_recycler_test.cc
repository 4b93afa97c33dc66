#include "util/os/file_recycler.h"

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

TEST(FileRecyclerTest, ALargeFileIsCutDownInSteps) {
  testing::TempDir directory;
  testing::FaultFileSystem files;
  const std::string path = Make(directory, "large", 9 * kMebibyte);
  FileRecycler recycler(&files, {});
  recycler.Retire(path);
  EXPECT_TRUE(Goes(path));
  EXPECT_EQ(files.calls(testing::FileOperation::kTruncate), 4u);
}

TEST(FileRecyclerTest, RemovesWhatIsLeftWhenItGoes) {
  testing::TempDir directory;
  std::vector<std::string> paths;
  for (int i = 0; i < 20; ++i) paths.push_back(Make(directory, std::to_string(i), 4 * kMebibyte));
  {
    FileRecycler recycler(PosixFileSystem(), {});
    for (const std::string& path : paths) recycler.Retire(path);
  }
  for (const std::string& path : paths) EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(FileRecyclerTest, GoesOnBehindAFileThatCannotBeCutDown) {
  testing::TempDir directory;
  testing::FaultFileSystem files;
  files.Fail(testing::FileOperation::kTruncate, 1, absl::InternalError("injected"));
  const std::string first = Make(directory, "first", 4 * kMebibyte),
                    second = Make(directory, "second", 10);
  FileRecycler recycler(&files, {});
  recycler.Retire(directory.File("missing"));
  recycler.Retire(first);
  recycler.Retire(second);
  EXPECT_TRUE(Goes(second));
  EXPECT_FALSE(std::filesystem::exists(first));
}

class SparesTest : public ::testing::Test {
 protected:
  // Retires a file of so many bytes and waits until it is a spare.
  void Spare(FileRecycler* recycler, const std::string& name, uint64_t size) {
    const uint64_t before = recycler->spare_bytes();
    recycler->Retire(Make(directory_, name, size));
    EXPECT_TRUE(testing::Eventually([&] { return recycler->spare_bytes() == before + size; }));
  }
  // How many bytes of another file are in a new one.
  uint64_t OldSize(FileRecycler* recycler, const std::string& name, uint64_t expected_size) {
    uint64_t old_size = 0;
    EXPECT_TRUE(recycler->Create(directory_.File(name), expected_size, &old_size).ok());
    EXPECT_EQ(std::filesystem::file_size(directory_.File(name)), old_size);
    return old_size;
  }
  size_t FileCount() const { return PosixFileSystem()->List(directory_.path())->size(); }

  const testing::TempDir directory_;
  testing::FaultFileSystem files_;
};

TEST_F(SparesTest, ANewFileIsTheSpareOfTheNearestSize) {
  FileRecycler recycler(&files_, {.capacity = 100 * kMebibyte});
  Spare(&recycler, "small", 1 * kMebibyte);
  Spare(&recycler, "large", 9 * kMebibyte);
  Spare(&recycler, "middle", 3 * kMebibyte);
  EXPECT_EQ(OldSize(&recycler, "new", 4 * kMebibyte), 3 * kMebibyte);
  EXPECT_EQ(OldSize(&recycler, "empty", 0), 1 * kMebibyte);
  EXPECT_EQ(OldSize(&recycler, "much smaller", 2 * kMebibyte), 0u) << "too much to cut off";
  EXPECT_EQ(OldSize(&recycler, "huge", 400 * kMebibyte), 9 * kMebibyte);
  EXPECT_EQ(OldSize(&recycler, "really new", kMebibyte), 0u);
  EXPECT_EQ(FileCount(), 5u);
}

TEST_F(SparesTest, TheyTakeNoMoreThanTheirCapacity) {
  FileRecycler recycler(&files_, {.capacity = 5 * kMebibyte});
  Spare(&recycler, "a", 3 * kMebibyte);
  const std::string too_much = Make(directory_, "b", 3 * kMebibyte);
  recycler.Retire(too_much);
  EXPECT_TRUE(Goes(too_much));
  Spare(&recycler, "c", 2 * kMebibyte);
  EXPECT_EQ(FileCount(), 2u);
}

TEST_F(SparesTest, OneThatNobodyWantsGoes) {
  FileRecycler recycler(&files_, {.capacity = kMebibyte, .lifetime = absl::Milliseconds(100)});
  Spare(&recycler, "a", kMebibyte);
  EXPECT_TRUE(testing::Eventually([&] { return FileCount() == 0; }));
  EXPECT_EQ(recycler.spare_bytes(), 0u);
}

TEST_F(SparesTest, TheyGoWhenTheDiskRunsFull) {
  files_.SetFreeBytes(100 * kMebibyte);
  FileRecycler recycler(&files_, {.capacity = 100 * kMebibyte});
  Spare(&recycler, "a", kMebibyte);
  Spare(&recycler, "b", kMebibyte);
  files_.SetFreeBytes(8 * kMebibyte);
  EXPECT_TRUE(testing::Eventually([&] { return FileCount() == 1; }));
  EXPECT_EQ(recycler.spare_bytes(), kMebibyte);
  files_.SetFreeBytes(1000);
  EXPECT_TRUE(testing::Eventually([&] { return FileCount() == 0; }));
}

TEST_F(SparesTest, TheyGoWithTheRecycler) {
  {
    FileRecycler recycler(&files_, {.capacity = kMebibyte});
    Spare(&recycler, "a", kMebibyte);
    EXPECT_EQ(FileCount(), 1u);
  }
  EXPECT_EQ(FileCount(), 0u);
}

TEST_F(SparesTest, OneThatCannotBeHadIsAsGoodAsNone) {
  for (const auto operation : {testing::FileOperation::kRename, testing::FileOperation::kOpen}) {
    FileRecycler recycler(&files_, {.capacity = kMebibyte});
    Spare(&recycler, "a", kMebibyte);
    files_.Fail(operation, 1, absl::InternalError("injected"), /*times=*/1);
    EXPECT_EQ(OldSize(&recycler, "new", kMebibyte), 0u);
    EXPECT_EQ(recycler.spare_bytes(), 0u);
    EXPECT_EQ(FileCount(), 1u) << "the new one alone";
    files_.ClearFaults();
  }
}

TEST_F(SparesTest, NothingIsLeftOfOneThatCannotBeHadAtAll) {
  FileRecycler recycler(&files_, {.capacity = kMebibyte});
  Spare(&recycler, "a", kMebibyte);
  files_.Fail(testing::FileOperation::kOpen, 1, absl::InternalError("injected"));
  files_.Fail(testing::FileOperation::kCreate, 1, absl::InternalError("injected"));
  uint64_t old_size = 0;
  EXPECT_FALSE(recycler.Create(directory_.File("new"), kMebibyte, &old_size).ok());
  EXPECT_EQ(FileCount(), 0u);
}

}  // namespace
}  // namespace varve
