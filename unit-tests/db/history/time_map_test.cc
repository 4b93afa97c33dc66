#include "db/history/time_map.h"

#include <gtest/gtest.h>

#include <optional>

namespace varve {
namespace {

TEST(TimeMapTest, TranslatesBothWays) {
  TimeMap map;
  EXPECT_EQ(map.InstantOf(1), std::nullopt);
  EXPECT_EQ(map.VersionAt(99'999, 7), std::nullopt);
  map.Add({5, 10'000});
  map.Add({8, 11'000});
  map.Add({20, 15'000});
  EXPECT_EQ(map.InstantOf(4), std::nullopt) << "older than the first mark";
  EXPECT_EQ(map.InstantOf(5), 10'000u);
  EXPECT_EQ(map.InstantOf(7), 10'000u);
  EXPECT_EQ(map.InstantOf(8), 11'000u);
  EXPECT_EQ(map.InstantOf(999), 15'000u);
  EXPECT_EQ(map.VersionAt(9'999, 30), std::nullopt);
  EXPECT_EQ(map.VersionAt(10'000, 30), 7u);
  EXPECT_EQ(map.VersionAt(14'999, 30), 19u);
  EXPECT_EQ(map.VersionAt(15'000, 30), 30u) << "everything behind the last mark";
}

TEST(TimeMapTest, AVersionIsTheNewestOfItsInstant) {
  TimeMap map;
  for (uint64_t i = 1; i <= 100; ++i) map.Add({i * 10, i * 1000});
  for (SequenceNumber version = 10; version <= 1009; ++version) {
    const uint64_t instant = map.InstantOf(version).value();
    const SequenceNumber newest = map.VersionAt(instant, 1009).value();
    EXPECT_GE(newest, version);
    EXPECT_EQ(map.InstantOf(newest), instant);
    if (newest < 1009) EXPECT_GT(map.InstantOf(newest + 1), instant);
  }
}

TEST(TimeMapTest, WhatDoesNotAscendIsLeftOut) {
  TimeMap map;
  map.Add({5, 10'000});
  map.Add({5, 20'000});  // the log brings it again
  map.Add({6, 9'000});   // the clock was set back
  map.Add({7, 10'000});
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.InstantOf(7), 10'000u);
}

TEST(TimeMapTest, AMarkASecondIsEnough) {
  TimeMap map;
  EXPECT_FALSE(map.NeedsMark(1) || map.started()) << "nobody asks for times";
  map.Start();
  EXPECT_TRUE(map.NeedsMark(1'000));
  map.Add({1, 1'000});
  EXPECT_FALSE(map.NeedsMark(1'999));
  EXPECT_FALSE(map.NeedsMark(500)) << "the clock was set back";
  EXPECT_TRUE(map.NeedsMark(2'000));
}

TEST(TimeMapTest, OldMarksAreThinnedToOneAMinute) {
  TimeMap map;
  for (uint64_t i = 0; i < 600; ++i) map.Add({i + 1, 1'000'000 + i * 1000});
  EXPECT_EQ(map.ThinUpTo(300), 299u - 5u);
  EXPECT_EQ(map.size(), 600u - 294u);
  EXPECT_EQ(map.InstantOf(1), 1'000'000u);
  for (SequenceNumber version = 1; version < 300; ++version) {
    const uint64_t exact = 1'000'000 + (version - 1) * 1000;
    const uint64_t known = map.InstantOf(version).value();
    EXPECT_LE(known, exact);
    EXPECT_GT(known + TimeMap::kThinnedMillis, exact);
  }
  for (SequenceNumber version = 300; version <= 600; ++version)
    EXPECT_EQ(map.InstantOf(version), 1'000'000 + (version - 1) * 1000) << "above the horizon";
  EXPECT_EQ(map.ThinUpTo(300), 0u);
}

TEST(TimeMapTest, FindsTheMarksOfAFlush) {
  TimeMap map;
  map.Add({5, 10'000});
  map.Add({8, 11'000});
  map.Add({20, 15'000});
  using Marks = std::vector<TimeMark>;
  EXPECT_EQ(map.MarksBetween(kNoSequence, 7), (Marks{{5, 10'000}}));
  EXPECT_EQ(map.MarksBetween(7, 19), (Marks{{8, 11'000}}));
  EXPECT_EQ(map.MarksBetween(5, 20), (Marks{{8, 11'000}, {20, 15'000}}));
  EXPECT_EQ(map.MarksBetween(20, 99), Marks());
}

}  // namespace
}  // namespace varve
