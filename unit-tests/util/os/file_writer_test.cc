#include "util/os/file_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

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
  auto writer = FileWriter::Create(&files_, directory_.File("a")).value();
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

TEST_F(FileWriterTest, AFileThatIsKeptStaysAndAnotherOneGoes) {
  for (const bool is_kept : {true, false}) {
    auto writer = FileWriter::Create(&files_, directory_.File("a")).value();
    const std::string expected = WriteLines(writer.get(), 10);
    ASSERT_TRUE(writer->Finish().ok());
    if (is_kept) writer->Keep();
    writer.reset();
    EXPECT_EQ(std::filesystem::exists(directory_.File("a")), is_kept);
    if (is_kept) EXPECT_TRUE(Content("a") == expected);
  }
}

TEST_F(FileWriterTest, WhatTheDiskRefusedIsNotTriedAgain) {
  for (const auto operation : {testing::FileOperation::kWrite, testing::FileOperation::kSync}) {
    auto writer = FileWriter::Create(&files_, directory_.File("a")).value();
    WriteLines(writer.get(), 10);
    files_.Fail(operation, 1, absl::InternalError("injected"), /*times=*/1);
    EXPECT_FALSE(writer->Finish().ok());
    EXPECT_FALSE(writer->Finish().ok()) << "the first error stays";
    writer.reset();
    EXPECT_TRUE(PosixFileSystem()->List(directory_.path())->empty());
  }
}

TEST_F(FileWriterTest, AnErrorIsFinal) {
  auto writer = FileWriter::Create(&files_, directory_.File("a")).value();
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
