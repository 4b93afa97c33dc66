#include "db/version/version.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "type/tree_key.h"
#include "unit-tests/testing/memory_segment.h"

namespace varve {
namespace {

using testing::MemorySegment;
using testing::TestRecord;

std::string Key(const std::string& user_key) { return FirstTreeKey(1) + user_key; }

std::vector<TestRecord> Records(const std::vector<std::string>& user_keys,
                                SequenceNumber sequence) {
  std::vector<TestRecord> records;
  for (const std::string& user_key : user_keys)
    records.push_back({Key(user_key), sequence, "v" + user_key});
  return records;
}

TEST(RunTest, FindsTheOneSegmentThatCouldHoldAKey) {
  varve::Run run;
  run.segments = {MemorySegment::Of(1, Records({"b", "d"}, 5)),
                  MemorySegment::Of(2, {}, {{Key("f"), Key("h"), 6}}),
                  MemorySegment::Of(3, Records({"h", "k"}, 5))};
  const auto number = [&run](const std::string& user_key) {
    const Segment* const segment = run.Find(Key(user_key));
    return segment == nullptr ? 0 : segment->info().number;
  };
  EXPECT_EQ(number("a"), 0u);
  EXPECT_EQ(number("b"), 1u);
  EXPECT_EQ(number("c"), 1u);
  EXPECT_EQ(number("d"), 1u);
  EXPECT_EQ(number("e"), 0u);
  EXPECT_EQ(number("f"), 2u);
  EXPECT_EQ(number("gz"), 2u);
  EXPECT_EQ(number("h"), 3u) << "the end of a range tombstone is not in its segment";
  EXPECT_EQ(number("k"), 3u);
  EXPECT_EQ(number("l"), 0u);
  EXPECT_EQ(varve::Run().Find(Key("a")), nullptr);
}

TEST(VersionTest, RunsGoFromNewestToOldest) {
  std::vector<Level> levels(2);
  levels[0].runs = {{{MemorySegment::Sized(5, Key("a"), Key("b"), 10)}},
                    {{MemorySegment::Sized(4, Key("a"), Key("b"), 20)}}};
  levels[1].runs = {{{MemorySegment::Sized(1, Key("a"), Key("b"), 30),
                      MemorySegment::Sized(2, Key("c"), Key("d"), 40)}}};
  const Version version(std::move(levels));
  ASSERT_EQ(version.runs().size(), 3u);
  EXPECT_EQ(version.runs()[0]->segments[0]->info().number, 5u);
  EXPECT_EQ(version.runs()[1]->segments[0]->info().number, 4u);
  EXPECT_EQ(version.runs()[2]->segments[0]->info().number, 1u);
  EXPECT_EQ(version.bytes(), 100u);
  EXPECT_EQ(version.segment_count(), 4u);
  EXPECT_EQ(version.levels()[1].bytes(), 70u);
}

TEST(VersionTest, RangeTombstonesOfAllSegmentsCountTogetherAndAreSharedWhileTheyStay) {
  const auto first = MemorySegment::Of(1, Records({"a"}, 1), {{Key("b"), Key("d"), 2}});
  const auto second = MemorySegment::Of(2, {}, {{Key("d"), Key("f"), 2}, {Key("a"), Key("c"), 9}});
  const auto plain = MemorySegment::Of(3, Records({"a", "z"}, 12));
  std::vector<Level> levels(1);
  levels[0].runs = {{{second}}, {{first}}};
  const Version before(levels);
  EXPECT_EQ(before.range_tombstones().CoveringSequence(Key("b"), kMaxSequence), 9u);
  EXPECT_EQ(before.range_tombstones().CoveringSequence(Key("b"), 8), 2u);
  EXPECT_EQ(before.range_tombstones().CoveringSequence(Key("e"), kMaxSequence), 2u);
  levels[0].runs.insert(levels[0].runs.begin(), varve::Run{{plain}});
  const Version after(levels, &before);
  EXPECT_EQ(&after.range_tombstones(), &before.range_tombstones());
  levels[0].runs.pop_back();
  const Version without(levels, &after);
  EXPECT_EQ(without.range_tombstones().CoveringSequence(Key("c"), kMaxSequence), kNoSequence);
}

}  // namespace
}  // namespace varve
