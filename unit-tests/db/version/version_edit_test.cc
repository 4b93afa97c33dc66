#include "db/version/version_edit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(VersionEditTest, EmptyLastLevelsVanish) {
  const std::string base = FirstTreeKey(1);
  std::vector<Level> levels(3);
  levels[0].runs = {{{MemorySegment::Of(3, Some(1, 30))}}, {{MemorySegment::Of(2, Some(1, 20))}}};
  levels[2].runs = {{{MemorySegment::Of(1, Some(1, 10))}}};
  const Version version(levels);
  CompactionPlan plan;
  plan.remove_only = true;
  plan.inputs = {{2, levels[2].runs[0].segments}};
  EXPECT_EQ(ApplyCompaction(version, plan, {}).size(), 1u);
  plan.inputs = {{0, levels[0].runs[0].segments}, {0, levels[0].runs[1].segments}};
  const std::vector<Level> after = ApplyCompaction(version, plan, {});
  ASSERT_EQ(after.size(), 3u) << "the last level stays apart from what is flushed";
  EXPECT_TRUE(after[0].runs.empty());
  EXPECT_EQ(after[2].runs.size(), 1u);
  plan.inputs.push_back({2, levels[2].runs[0].segments});
  EXPECT_EQ(ApplyCompaction(version, plan, {}).size(), 1u);
}

TEST(VersionEditTest, TheManifestGetsEverySegmentInItsPlace) {
  std::vector<Level> levels(2);
  levels[0].runs = {{{MemorySegment::Of(3, Some(1, 30))}}, {{MemorySegment::Of(2, Some(1, 20))}}};
  levels[1].runs = {{{MemorySegment::Of(1, Some(1, 10)), MemorySegment::Of(4, Some(2, 10))}}};
  const auto infos = ManifestLevels(levels);
  ASSERT_EQ(infos.size(), 2u);
  ASSERT_EQ(infos[0].size(), 2u);
  EXPECT_EQ(infos[0][0][0].number, 3u);
  EXPECT_EQ(infos[0][1][0].number, 2u);
  ASSERT_EQ(infos[1][0].size(), 2u);
  EXPECT_EQ(infos[1][0][1].number, 4u);
  EXPECT_EQ(infos[1][0][1].largest, FirstTreeKey(2) + "d");
}

}  // namespace
}  // namespace varve
