#include "db/segment/segment_builder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "db/segment/segment_footer.h"
#include "db/segment/segment_format.h"
#include "tools/segment_verifier.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/segment_fixture.h"
#include "util/base/checksum.h"

namespace varve {
namespace {

using testing::NumberedKey;
using testing::NumberedRecords;
using testing::OwnedRecord;
using testing::RandomRecords;
using testing::SegmentFixture;
using namespace std::string_literals;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

absl::StatusOr<std::unique_ptr<SegmentBuilder>> NewBuilder(const SegmentFixture& fixture,
                                                           uint32_t block_size = 4096) {
  SegmentBuilder::Options options;
  options.directory = fixture.directory.path();
  options.number = 5;
  options.block_size = block_size;
  return SegmentBuilder::Create(PosixFileSystem(), options);
}

// Golden bytes: this is on disk, so it never changes.
TEST(SegmentBuilderTest, ASmallSegmentIsTheseBytes) {
  SegmentFixture fixture;
  const std::vector<OwnedRecord> records = {{"\0\0\0\1a"s, "new", 9},
                                            {"\0\0\0\1a"s, "old", 3},
                                            {"\0\0\0\1b"s, "", 4, RecordKind::kTombstone}};
  const SegmentInfo info = fixture.Build(5, records, 4096, {{"\0\0\0\1c"s, "\0\0\0\1d"s, 10}});
  const std::string bytes = ReadFile(fixture.Path(5));
  ASSERT_EQ(bytes.size(), info.file_size);
  const auto record = [&](size_t at, size_t size) { return bytes.substr(at + 4, size - 4); };
  EXPECT_EQ(record(0, 16), "\x01\x05\x03\x09\0\0\0\1anew"s);
  EXPECT_EQ(record(16, 16), "\x01\x05\x03\x03\0\0\0\1aold"s);
  EXPECT_EQ(record(32, 13), "\x02\x05\x00\x04\0\0\0\1b"s);
  EXPECT_EQ(bytes.substr(45, 4096 - 45), std::string(4096 - 45, '\0'));
  const size_t fences = 8192;
  EXPECT_EQ(bytes.substr(fences, 12), std::string(12, '\0')) << "one fence: offset 0, an empty key";
  const size_t tombstones = fences + 16;
  EXPECT_EQ(bytes.substr(tombstones, 20), "\5\0\0\0\1c\5\0\0\0\1d\x0a\0\0\0\0\0\0\0"s);
  const size_t footer = tombstones + 24;
  EXPECT_EQ(bytes.substr(footer, 8), "\5\0\0\0\0\0\0\0"s);
  EXPECT_EQ(bytes.substr(bytes.size() - 32, 16), "\x28\x20\0\0\0\0\0\0\x86\0\0\0\1\0\0\0"s);
  EXPECT_EQ(bytes.substr(bytes.size() - 8), "VARVESEG");
  EXPECT_EQ(Checksum(bytes, 0), 4168810614u) << "everything together";
}

TEST(SegmentBuilderTest, EachSizeAndShapePassesTheVerifier) {
  for (const size_t count : {0u, 1u, 2u, 33u, 1000u, 30000u}) {
    for (const uint32_t block_size : {4096u, 65536u}) {
      SegmentFixture fixture;
      const SegmentInfo info =
          fixture.Build(5, RandomRecords(count, count, {0, 1, 60}, 4), block_size);
      const absl::Status status = VerifySegment(PosixFileSystem(), fixture.Path(5), info);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  SegmentFixture fixture;
  const SegmentInfo info = fixture.Build(5, RandomRecords(1, 50, {0, 5000, 3 << 20}, 2));
  EXPECT_TRUE(VerifySegment(PosixFileSystem(), fixture.Path(5), info).ok());
}

TEST(SegmentBuilderTest, RecordsOutOfOrderAreRefused) {
  SegmentFixture fixture;
  auto builder = NewBuilder(fixture);
  ASSERT_TRUE(builder.ok());
  const OwnedRecord b5 = {"b", "", 5}, b6 = {"b", "", 6}, a9 = {"a", "", 9}, b4 = {"b", "", 4};
  EXPECT_TRUE((*builder)->Add(b5.view()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->Add(b5.view())));
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->Add(b6.view())));
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->Add(a9.view())));
  const OwnedRecord range = {"c", "d", 7, RecordKind::kRangeTombstone};
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->Add(range.view())));
  EXPECT_TRUE(absl::IsInvalidArgument((*builder)->AddRangeTombstone({"d", "d", 7})));
  EXPECT_TRUE((*builder)->Add(b4.view()).ok());
  const auto info = (*builder)->Finish();
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->entries, 2u);
}

TEST(SegmentBuilderTest, WithoutFinishTheFileGoes) {
  SegmentFixture fixture;
  auto builder = NewBuilder(fixture);
  ASSERT_TRUE(builder.ok());
  const OwnedRecord record = {"key", std::string(2 << 20, 'v'), 1};
  EXPECT_TRUE((*builder)->Add(record.view()).ok());
  EXPECT_TRUE(std::filesystem::exists(fixture.Path(5)));
  EXPECT_GT((*builder)->file_size(), 2u << 20);
  EXPECT_EQ((*builder)->entries(), 1u);
  builder->reset();
  EXPECT_FALSE(std::filesystem::exists(fixture.Path(5)));
}

TEST(SegmentBuilderTest, BlockSizesAreCheckedAndChosenForTheRecords) {
  SegmentFixture fixture;
  for (const uint32_t wrong : {0u, 2048u, 5000u, 131072u}) {
    EXPECT_TRUE(absl::IsInvalidArgument(NewBuilder(fixture, wrong).status())) << wrong;
  }
  EXPECT_EQ(SegmentBuilder::BlockSizeFor(0), 4096u);
  EXPECT_EQ(SegmentBuilder::BlockSizeFor(130), 4096u);
  EXPECT_EQ(SegmentBuilder::BlockSizeFor(1030), 16384u);
  EXPECT_EQ(SegmentBuilder::BlockSizeFor(4130), 65536u);
  EXPECT_EQ(SegmentBuilder::BlockSizeFor(100 << 20), 65536u);
}

// A builder on a disk that fails.
class SegmentBuilderFaultTest : public ::testing::Test {
 protected:
  // The first error while building, or the info.
  absl::StatusOr<SegmentInfo> Build() {
    SegmentBuilder::Options options;
    options.directory = directory_.path();
    options.number = 5;
    auto builder = SegmentBuilder::Create(&disk_, options);
    if (!builder.ok()) return builder.status();
    for (const OwnedRecord& record : NumberedRecords(30000, 100)) {
      if (absl::Status added = (*builder)->Add(record.view()); !added.ok()) {
        EXPECT_EQ((*builder)->Finish().status(), added) << "an error stays";
        return added;
      }
    }
    return (*builder)->Finish();
  }

  testing::TempDir directory_;
  testing::FaultFileSystem disk_;
};

TEST_F(SegmentBuilderFaultTest, WhateverFailsIsReportedAndTheFileGoes) {
  using testing::FileOperation;
  for (const FileOperation operation : {FileOperation::kCreate, FileOperation::kWrite,
                                        FileOperation::kSync, FileOperation::kSyncDirectory}) {
    for (int nth = 1; nth <= 6; ++nth) {
      disk_.Fail(operation, nth, absl::InternalError("the disk is broken"), 1);
      const auto info = Build();
      disk_.ClearFaults();
      if (nth == 1 || operation == FileOperation::kWrite) {
        EXPECT_EQ(info.status().message(), "the disk is broken");
        EXPECT_FALSE(std::filesystem::exists(SegmentPath(directory_.path(), 5)));
      } else {
        EXPECT_TRUE(info.ok()) << info.status();
      }
    }
  }
}

TEST_F(SegmentBuilderFaultTest, AFullDiskIsSaidToBeFull) {
  disk_.SetFreeBytes(2 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(Build().status()));
  EXPECT_FALSE(std::filesystem::exists(SegmentPath(directory_.path(), 5)));
}

TEST_F(SegmentBuilderFaultTest, AReadThatFailsIsAnErrorOnceAndLeavesNothingBehind) {
  const auto info = Build();
  ASSERT_TRUE(info.ok());
  SegmentCaches caches(1 << 20, 1 << 20);
  auto segment = Segment::Open(&disk_, directory_.path(), *info, &caches);
  ASSERT_TRUE(segment.ok());
  for (int i = 0; i < 200; ++i) {
    disk_.Fail(testing::FileOperation::kRead, 1, absl::InternalError("the disk is broken"), 1);
    const testing::Lookup failed = testing::Get(**segment, NumberedKey(i * 80));
    disk_.ClearFaults();
    const testing::Lookup good = testing::Get(**segment, NumberedKey(i * 80));
    ASSERT_TRUE(good.found) << good.status;
    // A load of the whole table may fail and be made up for by one of its pages.
    EXPECT_TRUE(failed.found || failed.status.message() == "the disk is broken") << failed.status;
  }
  const auto iterator = (*segment)->NewIterator(false);
  disk_.Fail(testing::FileOperation::kRead, 1, absl::InternalError("the disk is broken"), 1);
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_EQ(iterator->status().message(), "the disk is broken");
  disk_.ClearFaults();
  iterator->SeekToFirst();
  EXPECT_TRUE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
}

TEST(SegmentFooterTest, KeysWithoutASlotComeBackToo) {
  SegmentFooter footer;
  footer.info.number = 5;
  footer.info.smallest = "a";
  footer.info.largest = "z";
  footer.info.largest_is_exclusive = true;
  footer.block_size = 8192;
  for (uint64_t i = 0; i < 500; ++i)
    footer.overflow.push_back({i * i, {i * 1000, static_cast<uint8_t>(i % 127 + 1)}});
  std::string bytes;
  AppendSegmentFooter(footer, &bytes);
  testing::TempDir directory;
  auto file = PosixFileSystem()->OpenForWrite(directory.File("000005.seg"), true);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Write(0, bytes).ok());
  uint64_t reads = 0;
  const auto read = ReadSegmentFooter(**file, 5, bytes.size(), &reads);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(reads, 2u) << "it is larger than the first read";
  EXPECT_EQ(read->info.smallest, "a");
  EXPECT_EQ(read->info.largest, "z");
  EXPECT_TRUE(read->info.largest_is_exclusive);
  EXPECT_EQ(read->block_size, 8192u);
  ASSERT_EQ(read->overflow.size(), 500u);
  EXPECT_EQ(read->overflow[499].hash, 499u * 499u);
  EXPECT_EQ(read->overflow[499].entry.offset, 499000u);
  EXPECT_EQ(read->overflow[499].entry.length_class, 499 % 127 + 1);
}

TEST(SegmentFooterTest, AnUnknownVersionSaysSo) {
  SegmentFixture fixture;
  const SegmentInfo info = fixture.Build(5, NumberedRecords(3, 3));
  std::string bytes = ReadFile(fixture.Path(5));
  const size_t tail = bytes.size() - kSegmentTailSize;
  bytes[tail + 12] = kSegmentFormatVersion + 1;
  EncodeFixed32(bytes.data() + tail + 20, Checksum(std::string_view(bytes).substr(tail, 20),
                                                   SegmentPartSeed(5, SegmentPart::kTail)));
  std::ofstream(fixture.Path(5), std::ios::binary) << bytes;
  const absl::Status status = VerifySegment(PosixFileSystem(), fixture.Path(5), info);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

}  // namespace
}  // namespace varve
