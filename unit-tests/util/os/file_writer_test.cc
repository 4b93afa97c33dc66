#include "util/os/file_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

constexpr uint64_t kPage = 4096;

// Counts the writes that begin within a page.
class WatchedFiles final : public testing::FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, FaultFileSystem::OpenForWrite(path, create));
    return std::make_unique<WatchedFile>(this, std::move(file));
  }
  int unaligned = 0;

 private:
  class WatchedFile final : public ForwardingFile {
   public:
    WatchedFile(WatchedFiles* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}
    absl::Status Write(uint64_t offset, std::string_view data) override {
      owner_->unaligned += offset % kPage != 0;
      return ForwardingFile::Write(offset, data);
    }

   private:
    WatchedFiles* const owner_;
  };
};

class FileWriterTest : public ::testing::Test {
 protected:
  // Lines of many lengths, and one that is large.
  std::string WriteLines(FileWriter* writer, int count) {
    std::string expected;
    for (int i = 0; i < count; ++i) {
      const std::string line(i == count / 2 ? 9u << 20 : 1 + i * 37u % 1000,
                             static_cast<char>('a' + i % 26));
      writer->buffer()->append(line);
      expected += line;
      EXPECT_TRUE(writer->WriteFull().ok());
      EXPECT_EQ(writer->size(), expected.size());
    }
    return expected;
  }
  std::string Content(const std::string& name) const {
    std::ifstream file(directory_.File(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const testing::TempDir directory_;
  WatchedFiles files_;
};

TEST_F(FileWriterTest, WritesWholePagesAndTheRestAtTheEnd) {
  auto writer = FileWriter::Create({&files_, nullptr}, directory_.File("a"), 0).value();
  std::string expected = WriteLines(writer.get(), 5000);
  EXPECT_EQ(files_.unaligned, 0);
  EXPECT_GT(files_.calls(testing::FileOperation::kWrite), 5u);
  const std::string large(1 << 20, 'L');
  ASSERT_TRUE(writer->Append(large).ok());
  writer->buffer()->append("the end");
  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(Content("a"), expected + large + "the end");
  EXPECT_EQ(writer->size(), expected.size() + large.size() + 7);
  EXPECT_GT(files_.calls(testing::FileOperation::kSync), 0u);
}

TEST_F(FileWriterTest, NothingIsLeftOfTheFileWrittenOver) {
  for (const uint64_t old_size : {uint64_t{30} << 20, uint64_t{1000}}) {
    FileRecycler recycler(&files_, {.capacity = uint64_t{100} << 20});
    std::ofstream(directory_.File("old"), std::ios::binary) << std::string(old_size, '!');
    recycler.Retire(directory_.File("old"));
    ASSERT_TRUE(testing::Eventually([&] { return recycler.spare_bytes() == old_size; }));
    auto writer =
        FileWriter::Create({&files_, &recycler}, directory_.File("new"), old_size).value();
    EXPECT_EQ(recycler.spare_bytes(), 0u);
    const std::string expected = WriteLines(writer.get(), 3000);
    ASSERT_TRUE(writer->Finish().ok());
    EXPECT_TRUE(Content("new") == expected);
    writer->Keep();
    writer.reset();
    EXPECT_TRUE(Content("new") == expected);
  }
}

TEST_F(FileWriterTest, OneThatIsNotKeptGoesOrIsASpare) {
  FileRecycler recycler(&files_, {.capacity = uint64_t{100} << 20});
  for (FileRecycler* const may_recycle : {&recycler, static_cast<FileRecycler*>(nullptr)}) {
    auto writer = FileWriter::Create({&files_, may_recycle}, directory_.File("a"), 0).value();
    WriteLines(writer.get(), 10);
    ASSERT_TRUE(writer->Finish().ok());
    const uint64_t size = writer->size();
    writer.reset();
    EXPECT_TRUE(
        testing::Eventually([&] { return !std::filesystem::exists(directory_.File("a")); }));
    EXPECT_TRUE(testing::Eventually([&] { return recycler.spare_bytes() == size; }));
  }
}

TEST_F(FileWriterTest, WhatTheDiskRefusedIsNotTriedAgain) {
  for (const auto operation : {testing::FileOperation::kWrite, testing::FileOperation::kSync}) {
    FileRecycler recycler(&files_, {.capacity = uint64_t{100} << 20});
    auto writer = FileWriter::Create({&files_, &recycler}, directory_.File("a"), 0).value();
    WriteLines(writer.get(), 10);
    files_.Fail(operation, 1, absl::InternalError("injected"), /*times=*/1);
    EXPECT_FALSE(writer->Finish().ok());
    writer.reset();
    EXPECT_TRUE(
        testing::Eventually([&] { return PosixFileSystem()->List(directory_.path())->empty(); }));
    EXPECT_EQ(recycler.spare_bytes(), 0u);
  }
}

TEST_F(FileWriterTest, AnErrorIsFinal) {
  auto writer = FileWriter::Create({&files_, nullptr}, directory_.File("a"), 0).value();
  files_.Fail(testing::FileOperation::kWrite, 1, absl::InternalError("injected"), /*times=*/1);
  writer->buffer()->append(1 << 20, 'x');
  EXPECT_EQ(writer->WriteFull(), absl::InternalError("injected"));
  EXPECT_EQ(writer->status(), absl::InternalError("injected"));
  EXPECT_EQ(writer->Append("y"), absl::InternalError("injected"));
  EXPECT_EQ(writer->Finish(), absl::InternalError("injected"));
  EXPECT_EQ(files_.calls(testing::FileOperation::kSync), 0u);
}

}  // namespace
}  // namespace varve
