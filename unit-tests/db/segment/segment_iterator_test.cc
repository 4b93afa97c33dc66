#include "db/segment/segment_iterator.h"

#include <gtest/gtest.h>

#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using testing::Copy;
using testing::NumberedKey;
using testing::NumberedRecords;
using testing::OwnedRecord;
using testing::RandomRecords;
using testing::SegmentFixture;

void ExpectAt(const InternalIterator& iterator, const std::vector<OwnedRecord>& records,
              size_t index) {
  ASSERT_TRUE(iterator.status().ok()) << iterator.status();
  ASSERT_EQ(iterator.Valid(), index < records.size());
  if (index < records.size()) {
    ASSERT_EQ(Copy(iterator.record()), records[index]);
  }
}

size_t LowerBound(const std::vector<OwnedRecord>& records, const std::string& key,
                  SequenceNumber sequence) {
  OwnedRecord target;
  target.key = key;
  target.sequence = sequence;
  return static_cast<size_t>(
      std::lower_bound(records.begin(), records.end(), target, testing::Before) - records.begin());
}

struct Shape {
  const char* name;
  size_t table_bytes;
  size_t block_bytes;
  bool fill_cache;
};

class SegmentIteratorTest : public ::testing::TestWithParam<Shape> {
 protected:
  // Opens a segment of the records with the parameter's caches, and calls `check` with each block
  // size.
  template <typename Check>
  void WithSegments(const std::vector<OwnedRecord>& records, Check check) {
    for (const uint32_t block_size : {4096u, 16384u, 65536u}) {
      SegmentFixture fixture(GetParam().table_bytes, GetParam().block_bytes);
      const auto segment = fixture.Open(fixture.Build(9, records, block_size));
      check(*segment->NewIterator(GetParam().fill_cache));
    }
  }

  static std::vector<std::vector<OwnedRecord>> Samples() {
    return {RandomRecords(1, 2000, {0, 20, 200}, 4), RandomRecords(2, 300, {0, 900, 1500, 9000}, 3),
            RandomRecords(3, 20, {10, 70000, (1 << 20) + 3}, 3), RandomRecords(4, 1, {5}, 1),
            RandomRecords(5, 600, {0, 100}, 400)};
  }
};

TEST_P(SegmentIteratorTest, GoesThroughAllRecordsInBothDirections) {
  for (const auto& records : Samples()) {
    WithSegments(records, [&](InternalIterator& iterator) {
      for (int round = 0; round < 3; ++round) {  // the later ones fill the cache
        iterator.SeekToFirst();
        for (size_t i = 0; i < records.size(); ++i, iterator.Next())
          ASSERT_NO_FATAL_FAILURE(ExpectAt(iterator, records, i));
        ExpectAt(iterator, records, records.size());
        iterator.SeekToLast();
        for (size_t i = records.size(); i-- > 0; iterator.Prev())
          ASSERT_NO_FATAL_FAILURE(ExpectAt(iterator, records, i));
        ExpectAt(iterator, records, records.size());
      }
    });
  }
}

TEST_P(SegmentIteratorTest, SeeksToTheFirstRecordAtOrAfterTheTarget) {
  for (const auto& records : Samples()) {
    WithSegments(records, [&](InternalIterator& iterator) {
      const size_t step = records.size() / 60 + 1;
      for (size_t i = 0; i < records.size(); i += step) {
        const std::string& key = records[i].key;
        for (const std::string& target :
             {key, key + '\0', key.substr(0, key.size() - 1), key + "zz"}) {
          for (const SequenceNumber sequence :
               {kMaxSequence, records[i].sequence, records[i].sequence - 1, uint64_t{0}}) {
            iterator.Seek(target, sequence);
            ASSERT_NO_FATAL_FAILURE(
                ExpectAt(iterator, records, LowerBound(records, target, sequence)));
          }
        }
      }
      iterator.Seek("", kMaxSequence);
      ExpectAt(iterator, records, 0);
      iterator.Seek(std::string(30, '\xff'), kMaxSequence);
      ExpectAt(iterator, records, records.size());
    });
  }
}

TEST_P(SegmentIteratorTest, MovesAtRandomLikeAPositionInASortedVector) {
  for (const auto& records : Samples()) {
    WithSegments(records, [&](InternalIterator& iterator) {
      std::mt19937_64 random(11);
      size_t at = records.size();
      for (int step = 0; step < 1000; ++step) {
        const uint64_t move = random() % 16;
        if (move == 0 || at == records.size()) {
          at = random() % records.size();
          iterator.Seek(records[at].key, records[at].sequence);
        } else if (move == 1) {
          at = 0;
          iterator.SeekToFirst();
        } else if (move == 2) {
          at = records.size() - 1;
          iterator.SeekToLast();
        } else if (move < 6) {
          const std::string key = records[at].key;
          while (at < records.size() && records[at].key == key) ++at;
          ASSERT_EQ(iterator.NextKey(), at < records.size() ? &iterator.record() : nullptr);
        } else if (move % 2 == 0) {
          ++at;
          iterator.Next();
        } else {
          at = at == 0 ? records.size() : at - 1;
          iterator.Prev();
        }
        ASSERT_NO_FATAL_FAILURE(ExpectAt(iterator, records, at)) << "step " << step;
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, SegmentIteratorTest,
                         ::testing::Values(Shape{"Cached", 16 << 20, 16 << 20, true},
                                           Shape{"CacheTooSmall", 16 << 20, 20000, true},
                                           Shape{"CacheHalfFull", 16 << 20, 1 << 19, true},
                                           Shape{"Streaming", 16 << 20, 16 << 20, false},
                                           Shape{"NoCaches", 0, 0, true}),
                         [](const auto& shape) { return shape.param.name; });

// Goes through the segment and returns how often it was read from disk.
uint64_t ReadsOfScan(SegmentFixture* fixture, Segment* segment, bool fill_cache,
                     bool backward = false) {
  const ShardedCounter& reads = fixture->caches->statistics.scan_reads;
  const uint64_t before = reads.Sum();
  const auto iterator = segment->NewIterator(fill_cache);
  if (backward) {
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    }
  } else {
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    }
  }
  return reads.Sum() - before;
}

TEST(SegmentIteratorReadsTest, TheThirdScanFillsFreeRoomOfTheCache) {
  for (const bool backward : {false, true}) {
    SegmentFixture fixture;
    const auto segment = fixture.Open(fixture.Build(9, NumberedRecords(5000, 100)));
    EXPECT_LE(ReadsOfScan(&fixture, segment.get(), /*fill_cache=*/false, backward), 10u)
        << "reads grow to 256 KiB";
    EXPECT_EQ(fixture.caches->blocks.usage(), 0u);
    for (int scan = 0; scan < 2; ++scan) {
      EXPECT_LE(ReadsOfScan(&fixture, segment.get(), /*fill_cache=*/true, backward), 16u)
          << "two blocks by themselves, and reads that grow to 128 KiB";
      EXPECT_LT(fixture.caches->blocks.usage(), 3 * 4400u);
    }
    EXPECT_LE(ReadsOfScan(&fixture, segment.get(), /*fill_cache=*/true, backward), 16u);
    EXPECT_GT(fixture.caches->blocks.usage(), 600000u);
    EXPECT_LE(ReadsOfScan(&fixture, segment.get(), /*fill_cache=*/true, backward), 3u)
        << "what the third one read before it had seen all twice";
    EXPECT_EQ(ReadsOfScan(&fixture, segment.get(), /*fill_cache=*/true, backward), 0u);
  }
}

TEST(SegmentIteratorReadsTest, AScanDrivesNothingOutOfAFullCache) {
  SegmentFixture fixture(/*table_bytes=*/16 << 20, /*block_bytes=*/1 << 20);
  const auto hot = fixture.Open(fixture.Build(8, NumberedRecords(100, 100)));
  const auto cold = fixture.Open(fixture.Build(9, NumberedRecords(50000, 100)));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(testing::Get(*hot, NumberedKey(20)).found);
  const uint64_t reads = fixture.caches->statistics.record_reads.Sum();
  for (const bool backward : {false, true, false, true}) {
    EXPECT_LE(ReadsOfScan(&fixture, cold.get(), /*fill_cache=*/true, backward), 120u);
    EXPECT_TRUE(testing::Get(*hot, NumberedKey(20)).found);
  }
  EXPECT_EQ(fixture.caches->statistics.record_reads.Sum(), reads) << "it is still in memory";
}

TEST(SegmentIteratorReadsTest, AShortScanReadsABlockOrTwo) {
  SegmentFixture fixture;
  const auto segment = fixture.Open(fixture.Build(9, NumberedRecords(5000, 100)));
  const auto iterator = segment->NewIterator(/*fill_cache=*/true);
  iterator->Seek(NumberedKey(5000), kMaxSequence);
  for (int i = 0; i < 30; ++i) iterator->Next();
  EXPECT_LT(fixture.caches->blocks.usage(), 3 * 4400u);
}

TEST(SegmentIteratorReadsTest, WhatIsPreparedServesNoOtherSeek) {
  using SeekStep = InternalIterator::SeekStep;
  SegmentFixture fixture;
  const std::vector<OwnedRecord> records = NumberedRecords(5000, 100);
  const auto segment = fixture.Open(fixture.Build(9, records));
  const auto iterator = segment->NewIterator(/*fill_cache=*/true);
  const auto prepare = [&](size_t index) {
    for (const SeekStep step :
         {SeekStep::kFindPlace, SeekStep::kFetchPlace, SeekStep::kFetchRecord})
      iterator->PrepareSeek(records[index].key, step);
  };
  prepare(700);
  iterator->Seek(records[700].key, kMaxSequence);
  ExpectAt(*iterator, records, 700);
  iterator->Seek(records[4000].key, kMaxSequence);
  ExpectAt(*iterator, records, 4000);
  prepare(4000);
  iterator->SeekToFirst();
  ExpectAt(*iterator, records, 0);
  iterator->Seek(records[90].key, kMaxSequence);
  ExpectAt(*iterator, records, 90);
  prepare(4999);
  prepare(1);
  iterator->Seek(records[1].key, kMaxSequence);
  ExpectAt(*iterator, records, 1);
}

TEST(SegmentIteratorReadsTest, ASeekIntoCachedBlocksFindsEachRecord) {
  using SeekStep = InternalIterator::SeekStep;
  SegmentFixture fixture;
  const std::vector<OwnedRecord> records = NumberedRecords(3000, 60);
  const auto segment = fixture.Open(fixture.Build(9, records));
  const auto iterator = segment->NewIterator(/*fill_cache=*/true);
  for (const bool prepares : {false, true}) {
    for (size_t i = 0; i < records.size(); ++i) {
      for (const std::string& key : {records[i].key, records[i].key + '\0'}) {
        if (prepares) {
          for (const SeekStep step :
               {SeekStep::kFindPlace, SeekStep::kFetchPlace, SeekStep::kFetchRecord})
            iterator->PrepareSeek(key, step);
        }
        const size_t expected = key == records[i].key ? i : i + 1;
        iterator->Seek(key, kMaxSequence);
        if (expected == records.size()) {
          EXPECT_FALSE(iterator->Valid());
          EXPECT_TRUE(iterator->status().ok());
        } else {
          ExpectAt(*iterator, records, expected);
        }
      }
    }
  }
}

TEST(SegmentIteratorReadsTest, AScanFromTheStartLoadsNoIndex) {
  SegmentFixture fixture;
  const auto segment = fixture.Open(fixture.Build(9, NumberedRecords(5000, 100)));
  const auto iterator = segment->NewIterator(false);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
  }
  EXPECT_EQ(fixture.caches->tables.usage(), 0u);
  EXPECT_EQ(fixture.caches->statistics.table_loads.Sum(), 1u) << "the footer";
}

}  // namespace
}  // namespace varve
