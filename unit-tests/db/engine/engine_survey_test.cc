// The survey of the tree: buffers, runs, segments, and the merge that is under way.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/held_segments.h"
#include "unit-tests/testing/test_store.h"
#include "varve/store_survey.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::HeldSegments;
using testing::TestStore;

constexpr size_t kMostSegments = 1000;

SurveyedStore& Survey(TestStore& store) { return *SurveyOf(&*store); }

void PutKeys(TestStore& store, const std::string& prefix, int keys) {
  for (int i = 0; i < keys; ++i)
    ASSERT_TRUE(store->Put(fmt::format("{}{:04}", prefix, i), "value").ok());
}

EngineOptions UnsyncedOptions() {
  EngineOptions options;
  options.sync = Durability::kNone;
  return options;
}

TEST(EngineSurveyTest, ShowsBuffersAndSegments) {
  TestStore store(UnsyncedOptions());
  PutKeys(store, "a", 10);
  const TreeSurvey before = Survey(store).SurveyTree(kMostSegments);
  ASSERT_EQ(before.buffers.size(), 1u);
  EXPECT_EQ(before.buffers[0].records, 10u);
  EXPECT_FALSE(before.buffers[0].is_full);
  EXPECT_FALSE(before.merge.has_value());
  ASSERT_TRUE(store->Flush().ok());
  const TreeSurvey after = Survey(store).SurveyTree(kMostSegments);
  ASSERT_EQ(after.levels.size(), 1u);
  ASSERT_EQ(after.levels[0].runs.size(), 1u);
  ASSERT_EQ(after.levels[0].runs[0].segment_count, 1u);
  const SegmentSurvey& segment = after.levels[0].runs[0].segments.at(0);
  EXPECT_EQ(segment.records, 10u);
  EXPECT_EQ(segment.first_key, "a0000");
  EXPECT_EQ(segment.last_key, "a0009");
  EXPECT_EQ(segment.first_namespace, "0");
  EXPECT_EQ(segment.newest - segment.oldest, 9u);
  EXPECT_TRUE(segment.has_index);
  EXPECT_FALSE(segment.is_merging);
  EXPECT_EQ(Survey(store).Positions().flushed, segment.newest);
}

TEST(EngineSurveyTest, LeavesOutSegmentsBehindTheBound) {
  TestStore store(UnsyncedOptions());
  PutKeys(store, "a", 10);
  ASSERT_TRUE(store->Flush().ok());
  const TreeSurvey survey = Survey(store).SurveyTree(0);
  EXPECT_EQ(survey.levels.at(0).runs.at(0).segment_count, 1u);
  EXPECT_TRUE(survey.levels[0].runs[0].segments.empty());
}

TEST(EngineSurveyTest, ShowsTheMergeThatIsUnderWay) {
  HeldSegments files("varve-merge");
  EngineOptions options = UnsyncedOptions();
  options.file_system = &files;
  TestStore store(options);
  for (const char* prefix : {"a", "b"}) {
    PutKeys(store, prefix, 10);
    PutKeys(store, "both", 10);
    ASSERT_TRUE(store->Flush().ok());
  }
  std::thread merger([&] { EXPECT_TRUE(store->Compact("", "").ok()); });
  EXPECT_TRUE(
      Eventually([&] { return Survey(store).SurveyTree(kMostSegments).merge.has_value(); }));
  const TreeSurvey survey = Survey(store).SurveyTree(kMostSegments);
  EXPECT_EQ(survey.merge->segments, 2u);
  EXPECT_GT(survey.merge->bytes, 0u);
  for (const RunSurvey& run : survey.levels.at(0).runs) EXPECT_TRUE(run.segments.at(0).is_merging);
  files.Release();
  merger.join();
  EXPECT_TRUE(
      Eventually([&] { return !Survey(store).SurveyTree(kMostSegments).merge.has_value(); }));
}

TEST(EngineSurveyTest, TellsWhichModesAreNotDurable) {
  TestStore store(UnsyncedOptions());
  PutKeys(store, "a", 1);
  const auto newest = [&](Durability mode) {
    return Survey(store).Positions().newest_by_durability[static_cast<size_t>(mode)];
  };
  EXPECT_EQ(newest(Durability::kNone), 1u);
  EXPECT_EQ(newest(Durability::kAlways), 0u);
  WriteBatch batch;
  batch.Put("b", "value");
  ASSERT_TRUE(store->Write({.sync = Durability::kAlways, .override_sync = true}, &batch).ok());
  EXPECT_EQ(newest(Durability::kAlways), 2u);
  EXPECT_EQ(newest(Durability::kNone), 1u);
  store.Reopen();
  EXPECT_GT(Survey(store).Positions().replayed_bytes, 0u) << "what no segment holds is replayed";
}

}  // namespace
}  // namespace varve
