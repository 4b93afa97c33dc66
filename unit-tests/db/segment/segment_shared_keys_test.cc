// Segments that hold once what their keys share: each reader sees whole keys, and what is damaged
// never gives a wrong one.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "db/format/key_base.h"
#include "db/segment/segment_format.h"
#include "tools/segment_survey.h"
#include "tools/segment_verifier.h"
#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using testing::Before;
using testing::Copy;
using testing::Get;
using testing::Lookup;
using testing::NumberedKey;
using testing::NumberedRecords;
using testing::OwnedRecord;
using testing::RandomRecords;
using testing::SegmentFixture;
using namespace std::string_literals;

constexpr uint64_t kSharedNumber = 5;

OwnedRecord Record(std::string key, SequenceNumber sequence) {
  OwnedRecord record;
  record.value = "value of " + key;
  record.key = std::move(key);
  record.sequence = sequence;
  return record;
}

// Keys of several generations that share much, little or nothing with the first one.
std::vector<OwnedRecord> MixedRecords() {
  std::vector<OwnedRecord> records;
  SequenceNumber sequence = 1000;
  const auto add = [&](const std::string& key) { records.push_back(Record(key, sequence--)); };
  const std::string first = "\0\0\0\1"s;
  add(first);  // the empty key of a user
  add(first);  // an older version
  for (int i = 0; i < 300; ++i) add(NumberedKey(static_cast<uint64_t>(i)));
  add(NumberedKey(299));
  add("\0\0\0\2"s);
  for (int i = 0; i < 300; ++i) add("\0\0\0\2"s + std::string(300, 'l') + std::to_string(1000 + i));
  for (int i = 0; i < 50; ++i) add("\xff\xff\xff\xff"s + std::to_string(100 + i));
  return records;
}

class SegmentSharedKeysTest : public ::testing::Test {
 protected:
  SegmentSharedKeysTest() { fixture_.shares_keys = true; }

  void Build(std::vector<OwnedRecord> records) {
    records_ = std::move(records);
    segment_.reset();
    // The blocks of a segment with the same number may still be there.
    fixture_.caches = std::make_unique<SegmentCaches>(64 << 20, 16 << 20);
    info_ = fixture_.Build(kSharedNumber, records_);
    const absl::Status whole =
        VerifySegment(PosixFileSystem(), fixture_.Path(kSharedNumber), info_);
    ASSERT_TRUE(whole.ok()) << whole;
    segment_ = fixture_.Open(info_);
  }
  SegmentFooter Footer() {
    const auto file = PosixFileSystem()->OpenForRead(fixture_.Path(kSharedNumber)).value();
    return ReadSegmentFooter(*file, kSharedNumber, info_.file_size, nullptr).value();
  }
  void Flip(uint64_t offset, int bit = 0) {
    std::fstream file(fixture_.Path(kSharedNumber),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get() ^ (1 << bit);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte));
  }

  // Each record is found, and none of a key that is not there.
  void ExpectGets(bool fill_cache) {
    for (const OwnedRecord& record : records_) {
      const Lookup lookup = Get(*segment_, record.key, record.sequence, fill_cache);
      ASSERT_TRUE(lookup.found) << lookup.status;
      ASSERT_EQ(lookup.record, record);
      EXPECT_FALSE(Get(*segment_, record.key + "absent", kMaxSequence, fill_cache).found);
    }
  }
  void ExpectScans(bool fill_cache) {
    const auto records = segment_->NewIterator(fill_cache);
    size_t at = 0;
    for (records->SeekToFirst(); records->Valid(); records->Next(), ++at)
      ASSERT_EQ(Copy(records->record()), records_[at]);
    ASSERT_EQ(at, records_.size());
    for (records->SeekToLast(); records->Valid(); records->Prev())
      ASSERT_EQ(Copy(records->record()), records_[--at]);
    ASSERT_EQ(at, 0u);
    ASSERT_NO_FATAL_FAILURE(WalkKeys(records.get(), &at));
    ASSERT_EQ(at, records_.size());
  }
  // Moves from key to key; `*at` is then the first record that the walk has not passed.
  void WalkKeys(InternalIterator* records, size_t* at) {
    *at = 0;
    records->SeekToFirst();
    for (const RecordView* record = records->Valid() ? &records->record() : nullptr;
         record != nullptr; record = records->NextKey()) {
      ASSERT_LT(*at, records_.size());
      const OwnedRecord& wanted = records_[*at];
      ASSERT_EQ(Copy(*record), wanted);
      while (*at < records_.size() && records_[*at].key == wanted.key) ++*at;
    }
  }
  // A seek stops at the first record at or behind the place, and the neighbours are there. One that
  // is prepared goes by the guides of cached blocks.
  void ExpectSeek(InternalIterator* records, const std::string& key, SequenceNumber sequence,
                  bool prepares) {
    using SeekStep = InternalIterator::SeekStep;
    if (prepares) {
      for (const SeekStep step :
           {SeekStep::kFindPlace, SeekStep::kFetchPlace, SeekStep::kFetchRecord})
        records->PrepareSeek(key, step);
    }
    records->Seek(key, sequence);
    OwnedRecord wanted;
    wanted.key = key;
    wanted.sequence = sequence;
    const auto place = std::lower_bound(records_.begin(), records_.end(), wanted, Before);
    ASSERT_EQ(records->Valid(), place != records_.end()) << key;
    if (place == records_.end()) return;
    ASSERT_EQ(Copy(records->record()), *place);
    records->Prev();
    ASSERT_EQ(records->Valid(), place != records_.begin());
    if (place == records_.begin()) return;
    ASSERT_EQ(Copy(records->record()), *(place - 1));
    records->Next();
    ASSERT_EQ(Copy(records->record()), *place);
  }

  void ExpectSeeks(const std::vector<std::string>& places) {
    for (const bool fill_cache : {false, true}) {
      const auto records = segment_->NewIterator(fill_cache);
      for (const std::string& place : places) {
        for (const SequenceNumber sequence : {kMaxSequence, SequenceNumber{700}, kNoSequence}) {
          for (const bool prepares : {false, true})
            ASSERT_NO_FATAL_FAILURE(ExpectSeek(records.get(), place, sequence, prepares));
        }
      }
    }
  }
  // Each answer is right, or it is an error.
  void ExpectNothingWrong() {
    SegmentCaches caches(1 << 20, 1 << 20);
    const auto segment =
        Segment::Open(PosixFileSystem(), fixture_.directory.path(), info_, &caches);
    if (!segment.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(segment.status())) << segment.status();
      return;
    }
    for (const OwnedRecord& record : records_) {
      const Lookup lookup = Get(**segment, record.key, record.sequence);
      ASSERT_EQ(lookup.found, lookup.status.ok());
      if (lookup.found) ASSERT_EQ(lookup.record, record);
    }
    const auto records = (*segment)->NewIterator(true);
    size_t at = 0;
    for (records->SeekToFirst(); records->Valid(); records->Next(), ++at)
      ASSERT_EQ(Copy(records->record()), records_[at]);
    ASSERT_TRUE(at == records_.size() || absl::IsDataLoss(records->status()));
    ASSERT_NO_FATAL_FAILURE(WalkKeys(records.get(), &at));
    ASSERT_TRUE(at == records_.size() || absl::IsDataLoss(records->status()));
    for (size_t i = 0; i < records_.size(); ++i) {
      records->Seek(records_[i].key, records_[i].sequence);
      if (records->Valid()) ASSERT_EQ(Copy(records->record()), records_[i]);
      if (!records->Valid()) ASSERT_TRUE(absl::IsDataLoss(records->status()));
    }
  }
  // Builds a segment of one to three versions of these keys; one record in five holds its whole key
  // because it has a cause.
  void BuildWithCauses(const std::vector<std::string>& keys, size_t value_size) {
    records_.clear();
    segment_.reset();
    fixture_.caches = std::make_unique<SegmentCaches>(64 << 20, 16 << 20);
    auto builder = SegmentBuilder::Create(
        PosixFileSystem(),
        {.directory = fixture_.directory.path(), .number = kSharedNumber, .shares_keys = true});
    ASSERT_TRUE(builder.ok());
    SequenceNumber sequence = 1000;
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t version = 0; version <= i % 3; ++version) {
        records_.push_back(Record(keys[i], sequence--));
        records_.back().value.assign(value_size, 'v');
        RecordView record = records_.back().view();
        if (sequence % 5 == 3) record.cause = WriteCause::kExpiryChange;
        ASSERT_TRUE((*builder)->Add(record).ok());
      }
    }
    info_ = (*builder)->Finish().value();
    segment_ = fixture_.Open(info_);
  }

  SegmentFixture fixture_;
  std::vector<OwnedRecord> records_;
  SegmentInfo info_;
  std::shared_ptr<Segment> segment_;
};

TEST_F(SegmentSharedKeysTest, WhatAllKeysShareStandsThereOnce) {
  Build(NumberedRecords(10'000, 20));
  SegmentFixture whole;
  const uint64_t before = whole.Build(kSharedNumber, records_).file_size;
  // 21 bytes a key, of which all but the last five are the same.
  EXPECT_LT(info_.file_size + 10'000 * 14, before);
  EXPECT_EQ(Footer().key_base, NumberedKey(0));
  ExpectGets(true);
  ExpectScans(true);
}

TEST_F(SegmentSharedKeysTest, WithoutCommonBytesNothingIsOtherwise) {
  for (const auto& records : {std::vector<OwnedRecord>{},
                              {Record("\0\0\0\1key"s, 3)},
                              {Record("a"s, 3), Record("ab"s, 2), Record("b"s, 1)}}) {
    const auto bytes_of = [&](bool shares_keys) {
      SegmentFixture fixture;
      fixture.shares_keys = shares_keys;
      fixture.Build(kSharedNumber, records);
      std::ifstream file(fixture.Path(kSharedNumber), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    EXPECT_EQ(bytes_of(true), bytes_of(false));
  }
}

TEST_F(SegmentSharedKeysTest, EveryShapeOfKeysIsReadBack) {
  std::vector<std::vector<OwnedRecord>> shapes = {MixedRecords(),
                                                  RandomRecords(1, 3000, {0, 1, 60}, 4),
                                                  RandomRecords(2, 60, {5000, 300'000}, 3),
                                                  {Record("\0\0\0\1"s, 9), Record("\0\0\0\1"s, 8)}};
  shapes.push_back(RandomRecords(3, 500, {0, 10}, 3));
  for (OwnedRecord& record : shapes.back()) record.key.insert(4, 400, 'k');
  for (auto& shape : shapes) {
    Build(std::move(shape));
    EXPECT_FALSE(Footer().key_base.empty());
    for (const bool fill_cache : {false, true, true}) {
      ExpectGets(fill_cache);
      ExpectScans(fill_cache);
    }
  }
}

TEST_F(SegmentSharedKeysTest, SeeksEndWhereTheOrderSays) {
  Build(MixedRecords());
  std::vector<std::string> places = {"",
                                     "\0"s,
                                     "\0\0\0"s,
                                     "\0\0\0\1"s,
                                     "\0\0\0\0zzz"s,
                                     "\0\0\0\1user:"s,
                                     "\0\0\0\1usez"s,
                                     "\0\0\0\1tz"s,
                                     "\0\0\0\2l"s,
                                     "\0\0\0\2m"s,
                                     "\0\0\0\3"s,
                                     "\1"s,
                                     "\xff"s,
                                     "\xff\xff\xff\xff\xff"s,
                                     "\0\0\0\2"s + std::string(299, 'l') + "a",
                                     NumberedKey(0),
                                     NumberedKey(299) + "x"};
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string key = records_[random() % records_.size()].key;
    if (random() % 2 == 0) key.resize(random() % (key.size() + 1));
    if (random() % 2 == 0 && !key.empty()) key[random() % key.size()] ^= 1 << random() % 8;
    if (random() % 3 == 0) key += static_cast<char>(random());
    places.push_back(key);
  }
  ExpectSeeks(places);
}

TEST_F(SegmentSharedKeysTest, GuidesLeadAmongRecordsThatShareMoreOrLess) {
  // One block has records with all of the base, with a part of it and with whole keys.
  std::mt19937 random(11);
  for (const size_t value_size : {0, 40, 300}) {
    std::vector<std::string> keys = {"\0\0\0\1abcdefgh"s};
    for (int i = 0; i < 400; ++i) {
      std::string key = keys[0].substr(0, random() % 4 == 0 ? 4 + random() % 8 : 12);
      if (random() % 40 == 0) key = "\1\0\0\1"s;
      key.push_back(static_cast<char>('i' + random() % 120));
      for (size_t more = random() % 6; more > 0; --more) key.push_back(static_cast<char>(random()));
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    BuildWithCauses(keys, value_size);
    std::vector<std::string> places = {"", "\0\0\0\1"s, "\0\0\0\1abcdefg"s, "\0\0\0\2"s, "\xff"s};
    for (const std::string& key : keys) {
      places.push_back(key);
      places.push_back(key + '\0');
      places.push_back(key + '\xff');
      places.push_back(key.substr(0, random() % (key.size() + 1)));
    }
    ExpectSeeks(places);
    ExpectGets(true);
    ExpectScans(true);
  }
}

TEST_F(SegmentSharedKeysTest, EachFlippedBitIsFoundAndNothingWrongIsRead) {
  std::vector<OwnedRecord> records;
  for (int i = 0; i < 4; ++i) records.push_back(Record("\0\0\0\1key"s + std::to_string(i), 9));
  records.push_back(Record("\0\0\0\1kez"s, 8));
  records.push_back(Record("\0\0\0\2"s, 7));
  records.push_back(Record("\1"s, 6));
  Build(records);
  const SegmentFooter footer = Footer();
  const uint64_t end_begin = footer.range_tombstones_offset + footer.range_tombstones_size;
  for (uint64_t offset = 0; offset < info_.file_size; ++offset) {
    // The pages of the table are as they always were: SegmentCorruptionTest flips bits in them.
    if (offset >= footer.data_size && offset < end_begin) continue;
    for (int bit = 0; bit < 8; ++bit) {
      SCOPED_TRACE(::testing::Message() << "bit " << bit << " of byte " << offset);
      Flip(offset, bit);
      EXPECT_TRUE(
          absl::IsDataLoss(VerifySegment(PosixFileSystem(), fixture_.Path(kSharedNumber), info_)));
      ASSERT_NO_FATAL_FAILURE(ExpectNothingWrong());
      Flip(offset, bit);
    }
  }
}

TEST_F(SegmentSharedKeysTest, AKeyIsComparedWithBaseAndRest) {
  const std::string base = "\0\0\0\1user:0000"s;
  const std::string key = base + "17";
  const auto shared = static_cast<uint32_t>(base.size());
  EXPECT_TRUE(IsJoined(base, shared, "17", key));
  EXPECT_FALSE(IsJoined(base, shared + 1, "17", key + "7")) << "the base is shorter";
  EXPECT_FALSE(IsJoined(base, shared, "17", base + "1"));
  for (size_t i = 0; i < key.size(); ++i) {
    std::string other = key;
    other[i] ^= 4;
    EXPECT_FALSE(IsJoined(base, shared, "17", other)) << i;
  }
  for (size_t size = 0; size < 40; ++size) {
    const std::string bytes(size, 'b');
    EXPECT_TRUE(SameBytes(bytes.data(), std::string(size, 'b').data(), size));
    for (size_t i = 0; i < size; ++i) {
      std::string other = bytes;
      other[i] = 'c';
      EXPECT_FALSE(SameBytes(bytes.data(), other.data(), size)) << size << " " << i;
    }
  }
}

TEST_F(SegmentSharedKeysTest, RecordsWithACauseHoldWholeKeys) {
  auto builder = SegmentBuilder::Create(
      PosixFileSystem(),
      {.directory = fixture_.directory.path(), .number = kSharedNumber, .shares_keys = true});
  ASSERT_TRUE(builder.ok());
  for (uint64_t i = 0; i < 100; ++i) {
    const OwnedRecord owned = Record(NumberedKey(i), i + 1);
    RecordView record = owned.view();
    if (i % 2 == 1) record.cause = WriteCause::kExpiryChange;
    ASSERT_TRUE((*builder)->Add(record).ok());
  }
  info_ = (*builder)->Finish().value();
  ASSERT_TRUE(VerifySegment(PosixFileSystem(), fixture_.Path(kSharedNumber), info_).ok());
  segment_ = fixture_.Open(info_);
  const auto records = segment_->NewIterator(true);
  uint64_t i = 0;
  for (records->SeekToFirst(); records->Valid(); records->Next(), ++i) {
    EXPECT_EQ(records->record().key, NumberedKey(i));
    EXPECT_EQ(records->record().cause, i % 2 == 1 ? WriteCause::kExpiryChange : WriteCause::kWrite);
  }
  EXPECT_EQ(i, 100u);
}

TEST_F(SegmentSharedKeysTest, ADamagedBaseIsFoundAndTheFirstRecordHasItToo) {
  Build(NumberedRecords(500, 20));
  const SegmentFooter footer = Footer();
  const uint64_t footer_begin = footer.range_tombstones_offset + footer.range_tombstones_size;
  const uint64_t base_begin = info_.file_size - kSegmentTailSize - footer.key_base.size();
  ASSERT_GT(base_begin, footer_begin);
  for (size_t i = 0; i < footer.key_base.size(); ++i) {
    Flip(base_begin + i);
    EXPECT_TRUE(
        absl::IsDataLoss(VerifySegment(PosixFileSystem(), fixture_.Path(kSharedNumber), info_)));
    SegmentCaches caches(1 << 20, 1 << 20);
    auto segment =
        Segment::Open(PosixFileSystem(), fixture_.directory.path(), info_, &caches).value();
    EXPECT_TRUE(absl::IsDataLoss(Get(*segment, records_[7].key).status));
    const auto records = segment->NewIterator(true);
    records->Seek(records_[7].key, kMaxSequence);
    EXPECT_FALSE(records->Valid());
    EXPECT_TRUE(absl::IsDataLoss(records->status()));

    const auto file = PosixFileSystem()->OpenForRead(fixture_.Path(kSharedNumber)).value();
    size_t at = 0;
    const auto survey = SurveySegment(*file, kSharedNumber, info_.file_size,
                                      [&](uint64_t, uint64_t, const RecordView& record) {
                                        EXPECT_EQ(Copy(record), records_[at++]);
                                        return absl::OkStatus();
                                      });
    ASSERT_TRUE(survey.ok()) << survey.status();
    EXPECT_FALSE(survey->footer);
    EXPECT_EQ(survey->records, records_.size());
    Flip(base_begin + i);
  }
}

TEST_F(SegmentSharedKeysTest, WithoutFooterAndFirstRecordNoKeyIsGuessed) {
  Build(MixedRecords());
  Flip(info_.file_size - kSegmentTailSize - 1);
  Flip(6);
  const auto file = PosixFileSystem()->OpenForRead(fixture_.Path(kSharedNumber)).value();
  const auto count = [&](std::string_view first_key) {
    size_t found = 0;
    const auto survey = SurveySegment(
        *file, kSharedNumber, info_.file_size,
        [&](uint64_t, uint64_t, const RecordView& record) {
          const auto place =
              std::lower_bound(records_.begin(), records_.end(), Copy(record), Before);
          EXPECT_TRUE(place != records_.end() && *place == Copy(record));
          ++found;
          return absl::OkStatus();
        },
        first_key);
    EXPECT_TRUE(survey.ok()) << survey.status();
    return found;
  };
  EXPECT_EQ(count(""), 50u) << "those that share nothing with the first key";
  EXPECT_EQ(count(FirstKeyOf(info_)), records_.size() - 1) << "the manifest tells the first key";
  info_.range_tombstones = 1;
  EXPECT_EQ(FirstKeyOf(info_), "") << "the smallest key may be that of a range";
}

}  // namespace
}  // namespace varve
