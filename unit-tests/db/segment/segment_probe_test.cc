#include "db/segment/segment_probe.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/testing/segment_fixture.h"

namespace varve {
namespace {

using testing::NumberedKey;
using testing::NumberedRecords;
using testing::SegmentFixture;

TEST(SegmentProbeTest, AProbeHasNotBegunUntilTheTableLetsItBegin) {
  SegmentFixture fixture;
  const auto segment =
      fixture.Open(fixture.Build(1, NumberedRecords(1000, 100), 4096, {}, /*hand_over=*/true));
  SegmentProbe probe;
  EXPECT_FALSE(probe.has_begun());
  probe.PrefetchRest();  // does nothing before Begin
  int denied = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    if (!probe.Begin(segment.get(), HashKey(NumberedKey(2 * i + 1)))) {
      EXPECT_FALSE(probe.has_begun());
      ++denied;
    }
  }
  EXPECT_GE(denied, 99);
  ASSERT_TRUE(probe.Begin(segment.get(), HashKey(NumberedKey(0))));
  EXPECT_TRUE(probe.has_begun());
  FoundRecord found;
  const absl::StatusOr<bool> result = probe.Finish(NumberedKey(0), kMaxSequence, true, &found);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(*result);
  EXPECT_FALSE(probe.has_begun()) << "Finish ends it";
}

TEST(SegmentProbeTest, StepsFindWhatOneLookupFinds) {
  for (const size_t value_size : {100u, 3000u}) {
    SegmentFixture fixture;
    const auto segment = fixture.Open(
        fixture.Build(1, NumberedRecords(500, value_size), 4096, {}, /*hand_over=*/true));
    bool disk_was_asked = false;
    for (int round = 0; round < 2; ++round) {
      std::vector<SegmentProbe> probes(500);
      for (uint64_t i = 0; i < probes.size(); ++i)
        ASSERT_TRUE(probes[i].Begin(segment.get(), HashKey(NumberedKey(2 * i))));
      for (SegmentProbe& probe : probes) probe.PrefetchSlot();
      for (SegmentProbe& probe : probes)
        disk_was_asked = probe.PrefetchRecord(/*fill_cache=*/true) || disk_was_asked;
      for (uint64_t i = 0; i < probes.size(); ++i) {
        probes[i].PrefetchRest();
        FoundRecord found;
        const auto result = probes[i].Finish(NumberedKey(2 * i), kMaxSequence, true, &found);
        ASSERT_TRUE(result.ok() && *result) << i;
        const testing::Lookup one = testing::Get(*segment, NumberedKey(2 * i));
        EXPECT_EQ(testing::Copy(found.record), one.record);
      }
    }
    EXPECT_TRUE(disk_was_asked);
  }
}

TEST(SegmentProbeTest, WhatIsCachedIsFoundWithoutAskingTheDisk) {
  SegmentFixture fixture;
  const auto segment =
      fixture.Open(fixture.Build(1, NumberedRecords(100, 100), 4096, {}, /*hand_over=*/true));
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(testing::Get(*segment, NumberedKey(2 * i)).found);
  const uint64_t reads = fixture.caches->statistics.record_reads.Sum();
  for (uint64_t i = 0; i < 100; ++i) {
    SegmentProbe probe;
    ASSERT_TRUE(probe.Begin(segment.get(), HashKey(NumberedKey(2 * i))));
    EXPECT_FALSE(probe.PrefetchRecord(/*fill_cache=*/true));
    FoundRecord found;
    ASSERT_TRUE(*probe.Finish(NumberedKey(2 * i), kMaxSequence, true, &found));
  }
  EXPECT_EQ(fixture.caches->statistics.record_reads.Sum(), reads);
}

TEST(SegmentProbeTest, AnOlderVersionIsFoundAndAKeyWithoutOneIsNot) {
  SegmentFixture fixture;
  std::vector<testing::OwnedRecord> records;
  for (SequenceNumber sequence = 300; sequence > 100; --sequence) {
    records.emplace_back().key = NumberedKey(1);
    records.back().sequence = sequence;
  }
  const auto segment = fixture.Open(fixture.Build(1, records, 4096, {}, /*hand_over=*/true));
  for (const SequenceNumber at : {300u, 200u, 101u, 100u}) {
    SegmentProbe probe;
    ASSERT_TRUE(probe.Begin(segment.get(), HashKey(NumberedKey(1))));
    FoundRecord found;
    const auto result = probe.Finish(NumberedKey(1), at, true, &found);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(*result, at > 100);
    if (*result) EXPECT_EQ(found.record.sequence, at);
  }
}

}  // namespace
}  // namespace varve
