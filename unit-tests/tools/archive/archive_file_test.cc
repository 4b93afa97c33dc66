#include "tools/archive/archive_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/archive/archive_position.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using Kind = ChangeOperation::Kind;

const ArchiveFileHeader kHeader{.number = 7,
                                .history_id = 0xfedcba9876543210,
                                .after = 100,
                                .predecessor = 0x0123456789abcdef,
                                .base = "20261125T193300Z-100"};

std::vector<Change> SomeCommits() {
  Change first{.version = 103, .instant_ms = 5000};
  first.operations = {
      {.kind = Kind::kSet, .space = 0, .name = "0", .key = "a", .value = "1", .metadata = "m"},
      {.kind = Kind::kExpire,
       .space = 70000,
       .name = "x",
       .key = "b",
       .value = "2",
       .expiry_ms = 9},
      {.kind = Kind::kDeleteRange, .space = 5, .name = "5", .key = std::string("\0k", 2)}};
  Change second{.version = 104, .instant_ms = 6000};
  second.operations = {
      {.kind = Kind::kMeta, .name = "0", .key = "a", .value = std::string(300, 'v')}};
  return {first, second};
}

void ExpectSame(const Change& one, const Change& other) {
  EXPECT_EQ(one.version, other.version);
  EXPECT_EQ(one.instant_ms, other.instant_ms);
  ASSERT_EQ(one.operations.size(), other.operations.size());
  for (size_t i = 0; i < one.operations.size(); ++i) {
    const ChangeOperation& a = one.operations[i];
    const ChangeOperation& b = other.operations[i];
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.space, b.space);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.key, b.key);
    EXPECT_EQ(a.value, b.value);
    EXPECT_EQ(a.metadata, b.metadata);
    EXPECT_EQ(a.expiry_ms, b.expiry_ms);
  }
}

TEST(ArchiveFileTest, WhatIsWrittenIsRead) {
  const std::vector<Change> commits = SomeCommits();
  const std::string bytes = *EncodeArchiveFile(kHeader, commits);
  const auto file = DecodeArchiveFile(bytes, "x.arc");
  ASSERT_TRUE(file.ok()) << file.status();
  ArchiveFileHeader expected = kHeader;
  expected.last = 104;
  expected.first_instant_ms = 5000;
  expected.last_instant_ms = 6000;
  expected.commits = 2;
  EXPECT_EQ(file->header, expected);
  ASSERT_EQ(file->commits.size(), 2u);
  for (size_t i = 0; i < 2; ++i) ExpectSame(file->commits[i], commits[i]);
}

TEST(ArchiveFileTest, TheHeaderIsReadAlone) {
  const testing::TempDir dir;
  const std::string path = dir.File("0000000007.arc");
  const std::string bytes = *EncodeArchiveFile(kHeader, SomeCommits());
  {
    const auto file = PosixFileSystem()->OpenForWrite(path, true);
    ASSERT_TRUE(file.ok() && (*file)->Write(0, bytes).ok());
  }
  const auto header = ReadArchiveFileHeader(PosixFileSystem(), path);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(*header, DecodeArchiveFile(bytes, path)->header);
  {
    const auto file = PosixFileSystem()->OpenForWrite(path, false);
    ASSERT_TRUE(file.ok() && (*file)->Truncate(bytes.size() - 1).ok());
  }
  EXPECT_TRUE(absl::IsDataLoss(ReadArchiveFileHeader(PosixFileSystem(), path).status()));
  EXPECT_TRUE(
      absl::IsNotFound(ReadArchiveFileHeader(PosixFileSystem(), dir.File("other")).status()));
}

TEST(ArchiveFileTest, AFlippedBitAnywhereIsSeen) {
  const std::string bytes = *EncodeArchiveFile(kHeader, SomeCommits());
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      const absl::Status status = DecodeArchiveFile(damaged, "x.arc").status();
      const bool is_format = at >= 8 && at < 12;
      ASSERT_TRUE(absl::IsDataLoss(status) || (is_format && absl::IsFailedPrecondition(status)))
          << at << " " << bit << " " << status;
      ASSERT_THAT(std::string(status.message()), HasSubstr("x.arc"));
    }
  }
}

TEST(ArchiveFileTest, AFileThatIsCutOffOrGoesOnIsSeen) {
  const std::string bytes = *EncodeArchiveFile(kHeader, SomeCommits());
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_TRUE(absl::IsDataLoss(DecodeArchiveFile(bytes.substr(0, size), "x").status())) << size;
  EXPECT_TRUE(absl::IsDataLoss(DecodeArchiveFile(bytes + '\0', "x").status()));
}

TEST(ArchiveFileTest, CommitsThatDoNotAscendAreRefused) {
  std::vector<Change> commits = SomeCommits();
  commits[1].version = 103;
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeArchiveFile(kHeader, commits).status()));
  commits = SomeCommits();
  commits[0].version = 100;
  EXPECT_TRUE(absl::IsInvalidArgument(EncodeArchiveFile(kHeader, commits).status()));
}

TEST(ArchiveFileTest, NamesAreNumbersOfTenDigitsOrMore) {
  EXPECT_EQ(ArchiveFileName(7), "0000000007.arc");
  EXPECT_EQ(ParseArchiveFileName("0000000007.arc"), 7u);
  EXPECT_EQ(ParseArchiveFileName(ArchiveFileName(123456789012)), 123456789012u);
  for (const char* name : {"", ".arc", "7.arc", "0000000000.arc", "0000000007.arx",
                           "000000000x.arc", "00000000007.arc", "0000000007.arc.incomplete"})
    EXPECT_FALSE(ParseArchiveFileName(name).has_value()) << name;
}

TEST(ArchivePositionTest, WhatIsWrittenIsReadAndNothingElse) {
  const ArchivePosition position{.history_id = 0xabc,
                                 .base = "20261125T193300Z-100",
                                 .number = 7,
                                 .version = 1300,
                                 .instant_ms = 1764099190000,
                                 .current_ms = 1764099200000,
                                 .predecessor = 0x123};
  const std::string text = EncodeArchivePosition(position);
  const auto read = DecodeArchivePosition(text, "LAST");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, position);
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_FALSE(DecodeArchivePosition(text.substr(0, at), "LAST").ok()) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      ASSERT_FALSE(DecodeArchivePosition(damaged, "LAST").ok()) << at << " " << bit;
    }
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      DecodeArchivePosition("varve-archive-last 2\nmore\n", "LAST").status()));
}

}  // namespace
}  // namespace varve
