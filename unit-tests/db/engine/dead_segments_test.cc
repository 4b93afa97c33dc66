// Segments of which nobody can see anything: planned for removal without being read.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/compaction/compaction_planner.h"
#include "db/version/version_edit.h"
#include "type/tree_key.h"
#include "unit-tests/testing/memory_segment.h"

namespace varve {
namespace {

using testing::MemorySegment;
using testing::TestRecord;

std::vector<TestRecord> Some(NamespaceGeneration generation, SequenceNumber sequence) {
  return {{FirstTreeKey(generation) + "b", sequence, "v"},
          {FirstTreeKey(generation) + "d", sequence + 1, "v"}};
}

TEST(PlanDeadSegmentsTest, SegmentsOfDeadGenerationsGoUnread) {
  std::vector<Level> levels(2);
  levels[0].runs = {{{MemorySegment::Of(3, Some(2, 50))}}};
  std::vector<TestRecord> both = Some(1, 10);
  both.push_back(Some(2, 20)[0]);
  levels[1].runs = {{{MemorySegment::Of(1, Some(1, 1)), MemorySegment::Of(2, both)}}};
  const Version version(levels);
  EXPECT_FALSE(PlanDeadSegments(version, {}, {}, nullptr));
  EXPECT_FALSE(PlanDeadSegments(version, {}, {}, [](NamespaceGeneration) { return true; }));
  const auto plan = PlanDeadSegments(
      version, {}, {}, [](NamespaceGeneration generation) { return generation != 1; });
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->remove_only);
  ASSERT_EQ(plan->inputs.size(), 1u);
  ASSERT_EQ(plan->inputs[0].segments.size(), 1u);
  EXPECT_EQ(plan->inputs[0].segments[0]->info().number, 1u)
      << "the other one holds live records too";
  const std::vector<Level> after = ApplyCompaction(version, *plan, {});
  EXPECT_EQ(after[1].runs[0].segments.size(), 1u);
  EXPECT_EQ(after[0].runs.size(), 1u);
}

TEST(PlanDeadSegmentsTest, SegmentsUnderNewerRangeTombstonesGoUnlessASnapshotSeesThem) {
  const std::string base = FirstTreeKey(1);
  std::vector<Level> levels(2);
  levels[0].runs = {
      {{MemorySegment::Of(3, {}, {{base + "a", base + "c", 20}, {base + "c", base + "dd", 21}})}}};
  levels[1].runs = {{{MemorySegment::Of(1, Some(1, 10)),
                      MemorySegment::Of(2, {{base + "dc", 12, ""}, {base + "e", 12, ""}})}}};
  const Version version(levels);
  const auto removed = [&version](const std::vector<SequenceNumber>& snapshots) {
    const auto plan = PlanDeadSegments(version, snapshots, {}, nullptr);
    return plan ? plan->inputs[0].segments[0]->info().number : 0;
  };
  EXPECT_EQ(removed({}), 1u);
  EXPECT_EQ(removed({5}), 1u) << "older than the segment";
  EXPECT_EQ(removed({10}), 0u);
  EXPECT_EQ(removed({15}), 0u);
  EXPECT_EQ(removed({20}), 0u) << "sees only half of it deleted";
  EXPECT_EQ(removed({21}), 1u);
  EXPECT_EQ(removed({5, 21, 30}), 1u);
  EXPECT_EQ(removed({5, 12, 30}), 0u);
}

}  // namespace
}  // namespace varve
