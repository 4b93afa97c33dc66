// Change files: blocks are found again, and no damaged byte is taken for a change.
#include "db/changes/change_file.h"

#include <gtest/gtest.h>

#include <string>

#include "db/format/file_names.h"
#include "fmt/format.h"
#include "unit-tests/testing/memory_file_system.h"
#include "varve/namespace.h"

namespace varve {
namespace {

constexpr uint64_t kNumber = 7;

ChangeBlock BlockOf(SequenceNumber after, int commits) {
  ChangeBlock block{.after = after, .last = after};
  block.dictionary = {{0, "0"}, {kFirstNamedNamespace, "name"}};
  for (int i = 1; i <= commits; ++i) {
    const SequenceNumber last = after + static_cast<SequenceNumber>(i) * 2;
    std::string operations;
    AppendChangeRecord({.version = last - 1, .key = "key", .value = fmt::format("value{}", last)},
                       last, &operations);
    AppendChangeRecord({.kind = ChangeOperation::Kind::kDelete,
                        .space = 1,
                        .version = last,
                        .key = "gone",
                        .expiry_ms = 5},
                       last, &operations);
    AddCommit({last, 1000 + last, operations}, &block);
  }
  return block;
}

class ChangeFileTest : public ::testing::Test {
 protected:
  // Writes blocks of so many commits each.
  void Write(int blocks, int commits) {
    ChangeFile file(&files_, "d", kNumber, nullptr);
    ASSERT_TRUE(file.OpenForWriting(0).ok());
    size_ = kChangeFileHeaderSize;
    last_ = 100;
    for (int i = 0; i < blocks; ++i) {
      const std::string bytes = EncodeChangeBlock(BlockOf(last_, commits), kNumber, size_);
      ASSERT_TRUE(file.Write(size_, bytes).ok());
      size_ += bytes.size();
      last_ += static_cast<SequenceNumber>(commits) * 2;
    }
    ASSERT_TRUE(file.Sync().ok());
  }

  testing::MemoryFileSystem files_;
  uint64_t size_ = 0;
  SequenceNumber last_ = kNoSequence;
};

TEST_F(ChangeFileTest, EveryPositionIsFound) {
  Write(/*blocks=*/300, /*commits=*/50);
  ChangeFile file(&files_, "d", kNumber, nullptr);
  EXPECT_TRUE(file.Verify(size_, 100, last_).ok());
  EXPECT_EQ(file.LastCommit(size_, 100).value(), last_);
  for (SequenceNumber position = 100; position < last_; position += 37) {
    const uint64_t offset = file.FindBlock(position, size_).value();
    ChangeBlock block;
    ASSERT_TRUE(file.ReadBlock(offset, size_, &block).ok());
    EXPECT_LE(block.after, position);
    EXPECT_GT(block.last, position);
  }
}

TEST_F(ChangeFileTest, ABlockReadsAsItWasWritten) {
  Write(/*blocks=*/1, /*commits=*/3);
  ChangeFile file(&files_, "d", kNumber, nullptr);
  ChangeBlock block;
  EXPECT_EQ(file.ReadBlock(kChangeFileHeaderSize, size_, &block).value(), size_);
  EXPECT_EQ(block.commits, BlockOf(100, 3).commits);
  EXPECT_EQ(block.dictionary, BlockOf(100, 3).dictionary);
  size_t at = 0;
  ChangeCommit commit;
  ASSERT_TRUE(ReadCommit(block, &at, &commit));
  EXPECT_EQ(commit.last, 102u);
  EXPECT_EQ(commit.instant_ms, 1102u);
  size_t operation = 0;
  ChangeRecord record;
  ASSERT_TRUE(ReadChangeRecord(commit, &operation, &record));
  EXPECT_EQ(record.version, 101u);
  EXPECT_EQ(record.value, "value102");
  ASSERT_TRUE(ReadChangeRecord(commit, &operation, &record));
  EXPECT_EQ(record.kind, ChangeOperation::Kind::kDelete);
  EXPECT_EQ(record.expiry_ms, 5u);
  EXPECT_EQ(operation, commit.operations.size());
}

TEST_F(ChangeFileTest, EveryFlippedBitIsFound) {
  Write(/*blocks=*/3, /*commits=*/4);
  testing::MemoryFileSystem::Files files = files_.files();
  std::string& bytes = files.at(ChangeFilePath("d", kNumber));
  ASSERT_EQ(bytes.size(), size_);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
    testing::MemoryFileSystem damaged(files);
    ChangeFile file(&damaged, "d", kNumber, nullptr);
    EXPECT_TRUE(absl::IsDataLoss(file.Verify(size_, 100, last_))) << i;
    bytes[i] = static_cast<char>(bytes[i] ^ 1 << i % 8);
  }
  bytes.resize(size_ - 1);
  testing::MemoryFileSystem cut(files);
  EXPECT_TRUE(absl::IsDataLoss(ChangeFile(&cut, "d", kNumber, nullptr).Verify(size_, 100, last_)));
  testing::MemoryFileSystem none;
  EXPECT_TRUE(absl::IsDataLoss(ChangeFile(&none, "d", kNumber, nullptr).Verify(size_, 100, last_)));
}

TEST_F(ChangeFileTest, WritingGoesOnBehindWhatHolds) {
  Write(/*blocks=*/2, /*commits=*/4);
  const uint64_t held = ChangeFile(&files_, "d", kNumber, nullptr).FindBlock(108, size_).value();
  ChangeFile file(&files_, "d", kNumber, nullptr);
  ASSERT_TRUE(file.OpenForWriting(held).ok());
  EXPECT_EQ(files_.files().at(ChangeFilePath("d", kNumber)).size(), held)
      << "what a crash left behind is cut away";
  ASSERT_TRUE(file.Write(held, EncodeChangeBlock(BlockOf(108, 1), kNumber, held)).ok());
  EXPECT_TRUE(file.Verify(files_.files().at(ChangeFilePath("d", kNumber)).size(), 100, 110).ok());
}

}  // namespace
}  // namespace varve
