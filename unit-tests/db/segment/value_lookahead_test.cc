#include "db/segment/value_lookahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "db/format/record_format.h"
#include "unit-tests/testing/recorded_reads.h"
#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using testing::OwnedRecord;

constexpr uint64_t kFile = 5;
constexpr uint64_t kBytesAValue = 5000;
constexpr size_t kRecords = 40;

// A segment whose values lie in one file, one after the other, and a lookahead of a scan over it.
class ValueLookaheadTest : public ::testing::Test {
 protected:
  void Begin(ValuesFrom from, bool is_mapped) {
    fixture_.caches = std::make_unique<SegmentCaches>(1 << 20, 1 << 20, is_mapped);
    auto file = PosixFileSystem()->OpenForWrite(ValueFilePath(fixture_.directory.path(), kFile),
                                                /*create=*/true);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Write(0, std::string(kRecords * kBytesAValue, 'v')).ok());
    std::vector<OwnedRecord> records = testing::NumberedRecords(kRecords, 0);
    for (uint64_t i = 0; i < kRecords; ++i) {
      records[i].value.clear();
      AppendValueHandle({kFile, i * kBytesAValue, kBytesAValue, 4096}, &records[i].value);
      records[i].flags |= kSeparatedValue;
    }
    segment_ = fixture_.Open(fixture_.Build(9, records, /*block_size=*/65536), &files_);
    ASSERT_TRUE(segment_->Footer().ok());
    window_.resize(segment_->loaded_footer()->data_size);
    ASSERT_TRUE(segment_->ReadExactly(0, window_.size(), window_.data()).ok());
    RecordView record;
    uint32_t shared = 0;
    for (uint64_t at = 0; at < window_.size(); ends_.push_back(at)) {
      at += DecodeRecord(std::string_view(window_).substr(at), 9, ChecksumMode::kVerify, &record,
                         &shared);
    }
    ASSERT_EQ(ends_.size(), kRecords);
    char byte = 0;  // the first read opens the file
    ASSERT_TRUE(segment_->value_files().front()->Read(0, 1, &byte).ok());
    files_.Take();
    lookahead_ = std::make_unique<ValueLookahead>(segment_.get(), from);
  }

  // Has the scan stand on a record. Returns the numbers of the values that were asked for.
  std::vector<uint64_t> StandOn(size_t record, bool from_disk) {
    lookahead_->Advance(window_, 0, ends_[record], from_disk);
    std::vector<uint64_t> asked;
    for (const testing::RecordedReads::Call& call : files_.Take()) {
      EXPECT_TRUE(call.ahead);
      EXPECT_EQ(call.size, kBytesAValue);
      asked.push_back(call.offset / kBytesAValue);
    }
    return asked;
  }

  testing::SegmentFixture fixture_;
  testing::RecordedReads files_;
  std::shared_ptr<Segment> segment_;
  std::string window_;
  std::vector<uint64_t> ends_;  // of the records
  std::unique_ptr<ValueLookahead> lookahead_;
};

TEST_F(ValueLookaheadTest, AsksMappingsForOneValueAhead) {
  Begin(ValuesFrom::kFiles, /*is_mapped=*/true);
  for (uint64_t i = 0; i + 1 < kRecords; ++i)
    EXPECT_THAT(StandOn(i, /*from_disk=*/false), ElementsAre(i + 1));
  EXPECT_THAT(StandOn(kRecords - 1, /*from_disk=*/false), ElementsAre());
}

TEST_F(ValueLookaheadTest, TellsTheDiskOfTwiceAsManyWithEachStep) {
  Begin(ValuesFrom::kFiles, /*is_mapped=*/false);
  EXPECT_THAT(StandOn(0, /*from_disk=*/true), ElementsAre(1));
  EXPECT_THAT(StandOn(1, /*from_disk=*/true), ElementsAre(2, 3));
  EXPECT_THAT(StandOn(2, /*from_disk=*/true), ElementsAre(4, 5, 6));
  EXPECT_THAT(StandOn(3, /*from_disk=*/true), ElementsAre(7, 8, 9, 10, 11));
  EXPECT_EQ(StandOn(4, /*from_disk=*/true).size(), 9u);
  EXPECT_THAT(StandOn(5, /*from_disk=*/true), ElementsAre(21));
  lookahead_->Restart();
  EXPECT_THAT(StandOn(30, /*from_disk=*/true), ElementsAre(31));
  EXPECT_EQ(StandOn(31, /*from_disk=*/true).size(), 2u);
}

TEST_F(ValueLookaheadTest, AsksNobodyForWhatCostsMoreThanItGains) {
  Begin(ValuesFrom::kFiles, /*is_mapped=*/false);
  EXPECT_THAT(StandOn(0, /*from_disk=*/false), ElementsAre());
  EXPECT_THAT(StandOn(1, /*from_disk=*/false), ElementsAre());
}

TEST_F(ValueLookaheadTest, AScanWithoutValuesAsksForNone) {
  Begin(ValuesFrom::kNowhere, /*is_mapped=*/true);
  EXPECT_THAT(StandOn(0, /*from_disk=*/true), ElementsAre());
  EXPECT_THAT(StandOn(1, /*from_disk=*/false), ElementsAre());
}

TEST_F(ValueLookaheadTest, WhatTheCacheHoldsIsNotAskedFor) {
  Begin(ValuesFrom::kCache, /*is_mapped=*/true);
  ClockCache& cache = fixture_.caches->blocks;
  const ClockCache::Handle held =
      cache.Insert(kFile, RecordKey(2 * kBytesAValue), cache.New(kBytesAValue));
  EXPECT_THAT(StandOn(0, /*from_disk=*/true), ElementsAre(1));
  EXPECT_THAT(StandOn(1, /*from_disk=*/true), ElementsAre(3));
  lookahead_->Restart();
  EXPECT_THAT(StandOn(10, /*from_disk=*/false), ElementsAre()) << "the slots come first";
  EXPECT_THAT(StandOn(11, /*from_disk=*/false), ElementsAre(12));
}

}  // namespace
}  // namespace varve
