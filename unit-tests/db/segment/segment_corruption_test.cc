// A segment with one flipped bit, for each of its bytes: the verifier names it, and no reader ever
// gives a wrong answer.

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "tools/segment_verifier.h"
#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using testing::Copy;
using testing::Get;
using testing::Lookup;
using testing::NumberedKey;
using testing::NumberedRecords;
using testing::OwnedRecord;
using testing::RandomRecords;
using testing::SegmentFixture;

void FlipBit(const std::string& path, uint64_t offset, int bit) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get() ^ (1 << bit);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte));
}

// With records that hold whole keys, and with some that share bytes of them.
class SegmentCorruptionTest : public ::testing::TestWithParam<bool> {
 protected:
  SegmentCorruptionTest() : records_(RandomRecords(5, 60, {0, 3, 50}, 3)) {
    fixture_.shares_keys = GetParam();
    info_ = fixture_.Build(7, records_, 4096, {{"a", "b", 5000}, {"c", "d", 6000}});
  }

  // What reading says while the damage is there: each answer is right or an error that names the
  // file.
  void ExpectNoWrongAnswers(bool fill_cache) {
    auto caches = std::make_unique<SegmentCaches>(1 << 20, fill_cache ? 1 << 20 : 0);
    auto segment = Segment::Open(PosixFileSystem(), fixture_.directory.path(), info_, caches.get());
    if (!segment.ok()) {
      ExpectNamesTheFile(segment.status());
      return;
    }
    for (const OwnedRecord& record : records_) {
      const Lookup lookup = Get(**segment, record.key, record.sequence, fill_cache);
      if (!lookup.status.ok()) {
        ExpectNamesTheFile(lookup.status);
      } else {
        ASSERT_TRUE(lookup.found);
        ASSERT_EQ(lookup.record, record);
      }
    }
    const auto iterator = (*segment)->NewIterator(fill_cache);
    size_t at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at)
      ASSERT_EQ(Copy(iterator->record()), records_[at]);
    ExpectEnd(*iterator, at == records_.size());
    at = records_.size();
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev())
      ASSERT_EQ(Copy(iterator->record()), records_[--at]);
    ExpectEnd(*iterator, at == 0);
    iterator->Seek(records_[30].key, records_[30].sequence);
    if (iterator->Valid()) {
      ASSERT_EQ(Copy(iterator->record()), records_[30]);
    }
    ExpectEnd(*iterator, iterator->Valid());
  }

  void ExpectEnd(const InternalIterator& iterator, bool complete) {
    if (!iterator.status().ok()) ExpectNamesTheFile(iterator.status());
    ASSERT_TRUE(complete || !iterator.status().ok());
  }

  void ExpectNamesTheFile(const absl::Status& status) {
    ASSERT_TRUE(absl::IsDataLoss(status)) << status;
    ASSERT_NE(status.message().find("000007.seg"), std::string::npos) << status;
  }

  SegmentFixture fixture_;
  std::vector<OwnedRecord> records_;
  SegmentInfo info_;
};

TEST_P(SegmentCorruptionTest, TheVerifierFindsEachFlippedByte) {
  const std::string path = fixture_.Path(7);
  ASSERT_TRUE(VerifySegment(PosixFileSystem(), path, info_).ok());
  for (uint64_t offset = 0; offset < info_.file_size; ++offset) {
    const int bit = static_cast<int>(offset % 8);
    FlipBit(path, offset, bit);
    const absl::Status status = VerifySegment(PosixFileSystem(), path, info_);
    ASSERT_NO_FATAL_FAILURE(ExpectNamesTheFile(status)) << offset;
    FlipBit(path, offset, bit);
  }
  ASSERT_TRUE(VerifySegment(PosixFileSystem(), path, info_).ok());
}

TEST_P(SegmentCorruptionTest, NoReaderGivesAWrongAnswer) {
  const std::string path = fixture_.Path(7);
  for (uint64_t offset = 0; offset < info_.file_size; offset += offset % 3 + 1) {
    const int bit = static_cast<int>(offset / 3 % 8);
    FlipBit(path, offset, bit);
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswers(offset % 2 == 0)) << "damage at " << offset;
    FlipBit(path, offset, bit);
  }
}

TEST_P(SegmentCorruptionTest, AFileCutShortOrGrownIsFound) {
  const std::string path = fixture_.Path(7);
  for (const int64_t change : {1, -1, -40, -4096}) {
    std::filesystem::resize_file(path, info_.file_size + change);
    ExpectNamesTheFile(VerifySegment(PosixFileSystem(), path, info_));
    if (change < 0) ExpectNoWrongAnswers(true);
    std::filesystem::resize_file(path, info_.file_size);
  }
}

TEST_P(SegmentCorruptionTest, AnotherSegmentsFileInItsPlaceIsFound) {
  const SegmentInfo other = fixture_.Build(8, records_, 4096, {{"a", "b", 5000}, {"c", "d", 6000}});
  ASSERT_EQ(other.file_size, info_.file_size);
  std::filesystem::rename(fixture_.Path(8), fixture_.Path(7));
  ExpectNamesTheFile(VerifySegment(PosixFileSystem(), fixture_.Path(7), info_));
}

INSTANTIATE_TEST_SUITE_P(Keys, SegmentCorruptionTest, ::testing::Bool(),
                         [](const auto& shares) { return shares.param ? "Shared" : "Whole"; });

TEST(SegmentContainmentTest, ADamagedRecordHidesNoOther) {
  for (const size_t block_cache : {size_t{0}, size_t{1} << 20}) {
    SegmentFixture fixture(1 << 20, block_cache);
    const auto records = NumberedRecords(200, 100);
    const SegmentInfo info = fixture.Build(7, records);
    // In the size of the value of record 40: what follows can't be found by walking through the
    // block.
    const uint64_t record_size = 4 + 1 + 1 + 1 + 1 + records[40].key.size() + 100;
    FlipBit(fixture.Path(7), 40 * record_size + 6, 0);
    const auto segment = fixture.Open(info);
    for (int round = 0; round < 2; ++round) {
      for (size_t i = 0; i < records.size(); ++i) {
        const Lookup lookup = Get(*segment, records[i].key);
        if (i == 40) {
          EXPECT_TRUE(absl::IsDataLoss(lookup.status));
          EXPECT_NE(lookup.status.message().find(std::to_string(40 * record_size)),
                    std::string::npos)
              << lookup.status;
        } else {
          EXPECT_TRUE(lookup.found && lookup.record == records[i]) << i << ' ' << lookup.status;
        }
      }
    }
    const auto iterator = segment->NewIterator(true);
    size_t before = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++before;
    EXPECT_EQ(before, 40u);
    EXPECT_TRUE(absl::IsDataLoss(iterator->status()));
    EXPECT_NE(iterator->status().message().find(std::to_string(40 * record_size)),
              std::string::npos);
  }
}

TEST(SegmentContainmentTest, ADamagedTablePageHidesOnlyItsKeys) {
  SegmentFixture fixture(64 << 20, 0);
  const auto records = NumberedRecords(5000, 20);
  const SegmentInfo info = fixture.Build(7, records);
  // Somewhere in the table or behind it.
  const uint64_t data_size = info.file_size - info.file_size % 4096;
  FlipBit(fixture.Path(7), data_size - 5 * 4096 + 777, 3);
  const auto segment = fixture.Open(info);
  size_t errors = 0;
  for (const OwnedRecord& record : records) {
    const Lookup lookup = Get(*segment, record.key);
    if (lookup.status.ok()) {
      ASSERT_EQ(lookup.record, record);
    } else {
      ++errors;
    }
  }
  EXPECT_GT(errors, 200u);
  EXPECT_LT(errors, 700u) << "the keys of one page of 12";
  const auto iterator = segment->NewIterator(true);
  iterator->Seek(records[4000].key, kMaxSequence);
  ASSERT_TRUE(iterator->Valid()) << "fences are read without the table: " << iterator->status();
  EXPECT_EQ(Copy(iterator->record()), records[4000]);
}

}  // namespace
}  // namespace varve
