#include "db/segment/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/segment_fixture.h"
#include "util/os/file_remover.h"

namespace varve {
namespace {

using testing::Get;
using testing::Lookup;
using testing::NumberedKey;
using testing::NumberedRecords;
using testing::OwnedRecord;
using testing::RandomRecords;
using testing::SegmentFixture;

// What a lookup of (key, at) must find among sorted records; null: nothing.
const OwnedRecord* Expected(const std::vector<OwnedRecord>& records, std::string_view key,
                            SequenceNumber at) {
  OwnedRecord target;
  target.key = key;
  target.sequence = at;
  const auto found = std::lower_bound(records.begin(), records.end(), target, testing::Before);
  return found != records.end() && found->key == key ? &*found : nullptr;
}

void ExpectAllFound(Segment& segment, const std::vector<OwnedRecord>& records) {
  for (const OwnedRecord& record : records) {
    for (const SequenceNumber at : {record.sequence, record.sequence - 1, kMaxSequence}) {
      for (const bool fill_cache : {false, true}) {
        const Lookup lookup = Get(segment, record.key, at, fill_cache);
        const OwnedRecord* expected = Expected(records, record.key, at);
        ASSERT_TRUE(lookup.status.ok()) << lookup.status;
        ASSERT_EQ(lookup.found, expected != nullptr) << testing::Describe(record) << " at " << at;
        if (expected != nullptr) {
          ASSERT_EQ(lookup.record, *expected) << " at " << at;
        }
      }
    }
  }
}

struct LookupShape {
  const char* name;
  size_t table_bytes;
  size_t block_bytes;
  bool hand_over;
};

class SegmentGetTest : public ::testing::TestWithParam<LookupShape> {};

TEST_P(SegmentGetTest, FindsEachVersionOfEachKeyAndNothingElse) {
  const LookupShape& shape = GetParam();
  for (const std::vector<size_t>& sizes : std::vector<std::vector<size_t>>{
           {0, 1, 100}, {0, 10, 900, 1100, 5000}, {0, 3000, 70000, (1 << 20) + 17}}) {
    const bool large = sizes.back() > 100000;
    const auto records = RandomRecords(sizes.back(), large ? 30 : 600, sizes, 5);
    for (const uint32_t block_size : {4096u, 65536u}) {
      SegmentFixture fixture(shape.table_bytes, shape.block_bytes);
      const SegmentInfo info = fixture.Build(7, records, block_size, {}, shape.hand_over);
      const auto segment = fixture.Open(info);
      ExpectAllFound(*segment, records);
      std::set<std::string> keys;
      for (const OwnedRecord& record : records) keys.insert(record.key);
      for (const std::string& key : keys) {
        for (const std::string& other : {key + 'x', key.substr(0, key.size() - 1), key + '\0'}) {
          if (keys.contains(other)) continue;
          const Lookup lookup = Get(*segment, other);
          ASSERT_TRUE(lookup.status.ok()) << lookup.status;
          ASSERT_FALSE(lookup.found);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Caches, SegmentGetTest,
                         ::testing::Values(LookupShape{"Resident", 64 << 20, 0, true},
                                           LookupShape{"Cached", 64 << 20, 64 << 20, true},
                                           LookupShape{"ReadBack", 64 << 20, 1 << 20, false},
                                           LookupShape{"NoCaches", 0, 0, false},
                                           LookupShape{"BlocksOnly", 0, 4 << 20, true}),
                         [](const auto& shape) { return shape.param.name; });

TEST(SegmentTest, TheInfoSaysWhatTheSegmentHolds) {
  SegmentFixture fixture;
  std::vector<OwnedRecord> records = NumberedRecords(100, 10);
  records[3].kind = RecordKind::kTombstone;
  records[3].value.clear();
  const SegmentInfo info = fixture.Build(3, records);
  EXPECT_EQ(info.number, 3u);
  EXPECT_EQ(info.entries, 100u);
  EXPECT_EQ(info.tombstones, 1u);
  EXPECT_EQ(info.smallest, NumberedKey(0));
  EXPECT_EQ(info.largest, NumberedKey(198));
  EXPECT_FALSE(info.largest_is_exclusive);
  EXPECT_EQ(info.smallest_sequence, 1u);
  EXPECT_EQ(info.largest_sequence, 100u);
  EXPECT_EQ(info.file_size, std::filesystem::file_size(fixture.Path(3)));
}

TEST(SegmentTest, RangeTombstonesWidenTheSegmentAndComeBack) {
  SegmentFixture fixture;
  const SegmentInfo info =
      fixture.Build(3, NumberedRecords(100, 10), 4096,
                    {{"a", "b", 500}, {NumberedKey(50), NumberedKey(70), 600}});
  EXPECT_EQ(info.range_tombstones, 2u);
  EXPECT_EQ(info.smallest, NumberedKey(0));
  EXPECT_EQ(info.largest, "b");
  EXPECT_TRUE(info.largest_is_exclusive);
  EXPECT_EQ(info.largest_sequence, 600u);
  const auto segment = fixture.Open(info);
  EXPECT_EQ(segment->range_tombstones()->CoveringSequence("aa", kMaxSequence), 500u);
  EXPECT_EQ(segment->range_tombstones()->CoveringSequence(NumberedKey(69), kMaxSequence), 600u);
  EXPECT_EQ(segment->range_tombstones()->CoveringSequence(NumberedKey(70), kMaxSequence),
            kNoSequence);
}

TEST(SegmentTest, ASegmentOfRangeTombstonesAloneHasNoRecords) {
  SegmentFixture fixture;
  const SegmentInfo info = fixture.Build(3, {}, 4096, {{"a", "b", 500}});
  EXPECT_EQ(info.smallest, "a");
  EXPECT_EQ(info.largest, "b");
  EXPECT_TRUE(info.largest_is_exclusive);
  const auto segment = fixture.Open(info);
  EXPECT_FALSE(Get(*segment, "a").found);
  const auto iterator = segment->NewIterator(true);
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekToLast();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("a", kMaxSequence);
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
}

TEST(SegmentTest, AnObsoleteFileGoesWithItsLastUser) {
  SegmentFixture fixture;
  auto segment = fixture.Open(fixture.Build(3, NumberedRecords(1000, 10), 4096, {}, true));
  auto other_user = segment;
  for (int i = 0; i < 2000; i += 2) ASSERT_TRUE(Get(*segment, NumberedKey(i)).found) << i;
  FileThread file_thread;
  auto remover = std::make_unique<FileRemover>(PosixFileSystem(), &file_thread);
  segment->MarkObsolete(remover.get());
  segment.reset();
  EXPECT_TRUE(Get(*other_user, NumberedKey(2)).found);
  EXPECT_TRUE(std::filesystem::exists(fixture.Path(3)));
  EXPECT_GT(fixture.caches->tables.usage(), 0u);
  EXPECT_GT(fixture.caches->blocks.usage(), 10000u);
  other_user.reset();
  EXPECT_TRUE(testing::Eventually([&] { return !std::filesystem::exists(fixture.Path(3)); }));
  remover.reset();
  EXPECT_FALSE(std::filesystem::exists(fixture.Path(3)));
  EXPECT_EQ(fixture.caches->tables.usage(), 0u);
}

TEST(SegmentTest, ReadersOfAllKindsMayRunTogether) {
  // Budgets so small that indexes and blocks come and go all the time.
  SegmentFixture fixture(60000, 100000);
  std::vector<std::shared_ptr<Segment>> segments;
  const auto records = NumberedRecords(2000, 50);
  for (uint64_t number = 1; number <= 4; ++number)
    segments.push_back(fixture.Open(fixture.Build(number, records)));
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (int i = 0; i < 2000; ++i) {
        Segment& segment = *segments[random() % 4];
        const uint64_t n = random() % 4000;
        const std::string key = NumberedKey(n);
        segment.PrefetchTable(HashKey(key));
        const Lookup lookup = Get(segment, key);
        if (!lookup.status.ok() || lookup.found != (n % 2 == 0)) ++failures;
        if (n % 2 == 0 && !segment.MayContain(HashKey(key))) ++failures;
        if (i % 100 == 0) {
          const auto iterator = segment.NewIterator(thread % 2 == 0);
          iterator->Seek(key, kMaxSequence);
          if (n < 3999 &&
              (!iterator->Valid() || iterator->record().key != NumberedKey((n + 1) / 2 * 2)))
            ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_LE(fixture.caches->tables.usage(), 60000u);
  EXPECT_LE(fixture.caches->blocks.usage(), 100000u);
}

}  // namespace
}  // namespace varve
