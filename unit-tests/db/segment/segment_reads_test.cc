// What reads cost: disk reads a lookup, bytes of memory a key, and who stays in memory.

#include <gtest/gtest.h>

#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using testing::Get;
using testing::NumberedKey;
using testing::NumberedRecords;
using testing::OwnedRecord;
using testing::SegmentFixture;

uint64_t RecordReads(const SegmentFixture& fixture) {
  return fixture.caches->statistics.record_reads.Sum();
}
uint64_t PageReads(const SegmentFixture& fixture) {
  return fixture.caches->statistics.table_page_reads.Sum();
}

// Eight runs of 100,000 keys each, no key in two of them.
class SegmentReadsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRuns = 8;
  static constexpr uint64_t kKeys = 100000;

  static void SetUpTestSuite() {
    fixture_ = new SegmentFixture(64 << 20, 0);
    segments_ = new std::vector<std::shared_ptr<Segment>>;
    for (uint64_t run = 0; run < kRuns; ++run) {
      std::vector<OwnedRecord> records(kKeys);
      for (uint64_t i = 0; i < kKeys; ++i) {
        records[i].key = NumberedKey(i * 2 * kRuns + run * 2);
        records[i].value.assign(20, 'v');
        records[i].sequence = i + 1;
      }
      segments_->push_back(fixture_->Open(fixture_->Build(run + 1, records, 4096, {}, true)));
    }
  }
  static void TearDownTestSuite() {
    delete segments_;
    delete fixture_;
  }

  // Looks for the key in all runs, as a store does: newest to oldest until it is found.
  static bool Find(const std::string& key, FoundRecord* found) {
    const uint64_t hash = HashKey(key);
    for (const auto& segment : *segments_) {
      const auto result = segment->Get(key, hash, kMaxSequence, true, found);
      EXPECT_TRUE(result.ok()) << result.status();
      if (*result) return true;
    }
    return false;
  }

  static SegmentFixture* fixture_;
  static std::vector<std::shared_ptr<Segment>>* segments_;
};

SegmentFixture* SegmentReadsTest::fixture_ = nullptr;
std::vector<std::shared_ptr<Segment>>* SegmentReadsTest::segments_ = nullptr;

TEST_F(SegmentReadsTest, AHitCostsOneReadAndAMissNone) {
  FoundRecord found;
  const uint64_t before = RecordReads(*fixture_);
  constexpr uint64_t kLookups = 100000;
  constexpr uint64_t kStep = kRuns * kKeys / kLookups + 1;  // odd: all runs take part
  static_assert(kStep % 2 == 1);
  for (uint64_t i = 0; i < kLookups; ++i)
    ASSERT_TRUE(Find(NumberedKey(i * kStep % (kRuns * kKeys) * 2), &found)) << i;
  const uint64_t after_hits = RecordReads(*fixture_);
  for (uint64_t i = 0; i < kLookups; ++i)
    ASSERT_FALSE(Find(NumberedKey(i * kStep * 2 + 1), &found)) << i;
  const uint64_t after_misses = RecordReads(*fixture_);
  const double lookups = kLookups;
  EXPECT_LE(static_cast<double>(after_hits - before) / lookups, 1.002);
  EXPECT_LE(static_cast<double>(after_misses - after_hits) / lookups, 0.002);
  EXPECT_EQ(PageReads(*fixture_), 0u);
  EXPECT_EQ(fixture_->caches->statistics.table_loads.Sum(), 0u)
      << "nothing is read back after building";
}

TEST_F(SegmentReadsTest, TablesAndFencesTakeFewBytesAKey) {
  const double bytes = static_cast<double>(fixture_->caches->tables.usage());
  EXPECT_LE(bytes / (kRuns * kKeys), 10.5);
}

TEST_F(SegmentReadsTest, MayContainAnswersFromMemory) {
  uint64_t maybe = 0;
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE((*segments_)[0]->MayContain(HashKey(NumberedKey(i * 2 * kRuns))));
    if ((*segments_)[0]->MayContain(HashKey(NumberedKey(i * 2 * kRuns + 1)))) ++maybe;
  }
  EXPECT_LE(maybe, kKeys / 2000);
}

TEST(SegmentMemoryTest, LargeRecordsToo) {
  for (const size_t value_size : {1000u, 4096u, 10000u}) {
    SegmentFixture fixture(64 << 20, 0);
    const uint64_t keys = 20000000 / value_size;
    const auto segment =
        fixture.Open(fixture.Build(1, NumberedRecords(keys, value_size),
                                   SegmentBuilder::BlockSizeFor(value_size + 30), {}, true));
    EXPECT_LE(static_cast<double>(fixture.caches->tables.usage()) / static_cast<double>(keys), 16.0)
        << value_size;
  }
}

TEST(SegmentResidencyTest, WithoutATableInMemoryAHitCostsTwoReadsAndAMissOne) {
  SegmentFixture fixture(0, 0);
  const auto segment = fixture.Open(fixture.Build(1, NumberedRecords(20000, 100)));
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(Get(*segment, NumberedKey(i * 20)).found);
  EXPECT_EQ(RecordReads(fixture), 1000u);
  EXPECT_EQ(PageReads(fixture), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_FALSE(Get(*segment, NumberedKey(i * 20 + 1)).found);
  EXPECT_LE(RecordReads(fixture), 1001u);
  EXPECT_EQ(PageReads(fixture), 2000u);
  EXPECT_LE(fixture.caches->statistics.table_loads.Sum(), 2u) << "the footer";
}

TEST(SegmentResidencyTest, ATableInUseIsLoadedButNotAtTheFirstTouch) {
  SegmentFixture fixture(1 << 20, 0);
  const auto segment = fixture.Open(fixture.Build(1, NumberedRecords(20000, 100)));
  EXPECT_TRUE(segment->MayContain(HashKey("missing"))) << "unknown without its table";
  ASSERT_TRUE(Get(*segment, NumberedKey(0)).found);
  EXPECT_EQ(fixture.caches->tables.usage(), 0u);
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(Get(*segment, NumberedKey(i * 2)).found);
  EXPECT_GT(fixture.caches->tables.usage(), 180000u);
  EXPECT_LE(PageReads(fixture), 10u);
  EXPECT_FALSE(segment->MayContain(HashKey("missing")));
}

TEST(SegmentResidencyTest, TablesStayWithinTheirBudget) {
  SegmentFixture fixture(500000, 0);  // two tables and a bit
  std::vector<std::shared_ptr<Segment>> segments;
  const auto records = NumberedRecords(20000, 10);
  for (uint64_t number = 1; number <= 6; ++number) {
    segments.push_back(fixture.Open(fixture.Build(number, records, 4096, {}, number % 2 == 0)));
    EXPECT_LE(fixture.caches->tables.usage(), 500000u);
  }
  for (uint64_t i = 0; i < 3000; ++i) {
    ASSERT_TRUE(Get(*segments[i % 6], NumberedKey(i * 2)).found);
    ASSERT_LE(fixture.caches->tables.usage(), 500000u);
  }
  EXPECT_GT(fixture.caches->tables.usage(), 300000u);
  segments.clear();
  EXPECT_EQ(fixture.caches->tables.usage(), 0u);
}

TEST(SegmentResidencyTest, AnIteratorKeepsTheFencesItUsesWhenTheyAreEvicted) {
  SegmentFixture fixture(250000, 1 << 20);
  const auto records = NumberedRecords(20000, 10);
  const auto first = fixture.Open(fixture.Build(1, records, 4096, {}, true));
  const auto iterator = first->NewIterator(true);
  iterator->Seek(NumberedKey(0), kMaxSequence);
  const auto second = fixture.Open(fixture.Build(2, records, 4096, {}, true));
  EXPECT_TRUE(first->MayContain(HashKey("missing"))) << "evicted";
  for (uint64_t i = 0; i < records.size(); i += 500) {
    iterator->Seek(records[i].key, kMaxSequence);
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->record().key, records[i].key);
  }
}

TEST(SegmentBlockCacheTest, ASecondReadOfABlockOrRecordComesFromMemory) {
  for (const size_t value_size : {100u, 3000u}) {
    SegmentFixture fixture(64 << 20, 64 << 20);
    const auto records = NumberedRecords(300, value_size);
    const auto segment =
        fixture.Open(fixture.Build(1, records, SegmentBuilder::BlockSizeFor(value_size), {}, true));
    for (const OwnedRecord& record : records) ASSERT_EQ(Get(*segment, record.key).record, record);
    const uint64_t first_round = RecordReads(fixture);
    EXPECT_EQ(first_round,
              value_size == 100 ? (300 * (records[0].key.size() + 109) + 4095) / 4096 : 300);
    for (const OwnedRecord& record : records) ASSERT_EQ(Get(*segment, record.key).record, record);
    EXPECT_EQ(RecordReads(fixture), first_round);
  }
}

TEST(SegmentBlockCacheTest, LookupsOfLargeRecordsUseTheBlocksThatAScanLeft) {
  SegmentFixture fixture(64 << 20, 16 << 20);
  const auto records = NumberedRecords(64, 4000);
  const auto segment = fixture.Open(fixture.Build(1, records, 32768, {}, true));
  // The first scans of a segment leave nothing (db/segment/scan_history.h).
  for (int scan = 0; scan < 4; ++scan) {
    const auto iterator = segment->NewIterator(/*fill_cache=*/true);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    }
  }
  const uint64_t before = RecordReads(fixture);
  for (const OwnedRecord& record : records) ASSERT_EQ(Get(*segment, record.key).record, record);
  EXPECT_EQ(RecordReads(fixture), before);
}

TEST(SegmentBlockCacheTest, AReadThatDoesNotFillTheCacheLeavesItAlone) {
  for (const size_t value_size : {100u, 3000u}) {
    SegmentFixture fixture(64 << 20, 64 << 20);
    const auto segment =
        fixture.Open(fixture.Build(1, NumberedRecords(300, value_size), 4096, {}, true));
    for (uint64_t i = 0; i < 300; ++i)
      ASSERT_TRUE(Get(*segment, NumberedKey(i * 2), kMaxSequence, false).found);
    EXPECT_EQ(fixture.caches->blocks.usage(), 0u);
    EXPECT_EQ(RecordReads(fixture), 300u);
  }
}

}  // namespace
}  // namespace varve
