#include "db/compaction/compaction_planner.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "db/version/version_edit.h"
#include "unit-tests/testing/memory_segment.h"

namespace varve {
namespace {

using testing::MemorySegment;

std::string PlannedKey(std::string_view key) { return FirstTreeKey(1).append(key); }

// Level 0 with segment 2 over segment 1.
std::shared_ptr<const Version> TwoRuns() {
  const auto empty = std::make_shared<const Version>();
  const auto one = std::make_shared<const Version>(
      ApplyFlush(*empty, {MemorySegment::Sized(1, PlannedKey("a"), PlannedKey("m"), 100)}),
      empty.get());
  return std::make_shared<const Version>(
      ApplyFlush(*one, {MemorySegment::Sized(2, PlannedKey("b"), PlannedKey("z"), 200)}),
      one.get());
}

TEST(CompactionPlannerTest, APickerSeesTheTreeAsItIs) {
  const std::shared_ptr<const Version> version = TwoRuns();
  const TreeShape& tree = version->shape();
  ASSERT_EQ(tree.levels.size(), 1u);
  ASSERT_EQ(tree.levels[0].runs.size(), 2u);
  const RunShape& newest = tree.levels[0].runs[0];
  ASSERT_EQ(newest.segments.size(), 1u);
  EXPECT_EQ(newest.segments[0].number, 2u);
  EXPECT_EQ(newest.bytes(), 200u);
  EXPECT_EQ(newest.segments[0].smallest, PlannedKey("b"));
  EXPECT_TRUE(newest.segments[0].Overlaps(tree.levels[0].runs[1].segments[0]));
  EXPECT_EQ(newest.IndexOf(PlannedKey("z")), 0u);
  EXPECT_EQ(newest.IndexOf(PlannedKey("zz")), 1u);
}

TEST(CompactionPlannerTest, AChoiceBecomesAPlanOfTheSameSegments) {
  const std::shared_ptr<const Version> version = TwoRuns();
  CompactionPick pick;
  pick.inputs = {{0, {2}}, {0, {1}}};
  pick.output_level = 1;
  pick.joins_last_run = true;
  pick.drops_tombstones = true;
  const absl::StatusOr<CompactionPlan> plan = PlanOf(*version, pick);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->inputs.size(), 2u);
  EXPECT_EQ(plan->inputs[0].segments[0], version->levels()[0].runs[0].segments[0]);
  EXPECT_EQ(plan->inputs[1].segments[0], version->levels()[0].runs[1].segments[0]);
  EXPECT_EQ(plan->output_level, 1);
  EXPECT_TRUE(plan->joins_last_run);
  EXPECT_TRUE(plan->drops_tombstones);
  EXPECT_FALSE(plan->move_only);
}

TEST(CompactionPlannerTest, AChoiceThatTheTreeDoesNotHaveIsRefused) {
  const std::shared_ptr<const Version> version = TwoRuns();
  const std::vector<std::vector<CompactionPick::Input>> choices = {
      {}, {{0, {3}}}, {{1, {1}}}, {{-1, {1}}}, {{0, {}}}, {{0, {1, 2}}}};
  for (const std::vector<CompactionPick::Input>& inputs : choices) {
    CompactionPick pick;
    pick.inputs = inputs;
    pick.output_level = 1;
    EXPECT_TRUE(absl::IsInvalidArgument(PlanOf(*version, pick).status()));
  }
  CompactionPick nowhere;
  nowhere.inputs = {{0, {1}}};
  nowhere.output_level = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(PlanOf(*version, nowhere).status()));
}

}  // namespace
}  // namespace varve
