#include "db/compaction/merge_parts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/compaction/compaction.h"
#include "db/segment/segment_caches.h"
#include "type/tree_key.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/vector_iterator.h"

namespace varve {
namespace {

using testing::TestRecord;
using testing::VectorIterator;

std::string KeyOfPart(int i) { return FirstTreeKey(1) + std::to_string(100000 + i); }

class MergePartsTest : public ::testing::Test {
 protected:
  // Adds a run of these records to the inputs of the plan.
  void AddRun(std::vector<TestRecord> records) {
    const uint64_t entries = records.size();
    VectorIterator input(std::move(records));
    const CompactionContext context{.file_system = PosixFileSystem(),
                                    .directory = directory_.path(),
                                    .options = &options_,
                                    .caches = &caches_,
                                    .next_file_number = [this] { return next_number_++; }};
    const auto flushed = RunFlush(&input, {}, {entries, entries * 500}, false, nullptr, context);
    ASSERT_TRUE(flushed.ok()) << flushed.status();
    plan_.inputs.push_back({0, flushed->segments});
    for (const auto& segment : flushed->segments) bytes_ += segment->info().file_size;
  }
  // A run of the keys from `first` on, `step` apart, with values of 400 bytes.
  void AddRun(int first, int count, int step) {
    std::vector<TestRecord> records;
    for (int i = 0; i < count; ++i) {
      records.push_back({KeyOfPart(first + i * step), ++sequence_, std::string(400, 'v')});
    }
    AddRun(std::move(records));
  }

  const testing::TempDir directory_;
  SegmentCaches caches_{1 << 20, 0};
  EngineOptions options_;
  CompactionPlan plan_;
  uint64_t bytes_ = 0;
  SequenceNumber sequence_ = 0;
  uint64_t next_number_ = 1;
};

TEST_F(MergePartsTest, PartsHaveAboutAsManyBytes) {
  AddRun(0, 4000, 2);      // even keys
  AddRun(1, 2000, 2);      // odd keys of the first half
  AddRun(20000, 3000, 1);  // behind them
  const std::vector<std::string> cuts = MergeCuts(plan_, 4, bytes_ / 8);
  // Behind 2250 of the 9000 records, 4500 (500 behind the odd keys) and 6750.
  ASSERT_EQ(cuts.size(), 3u);
  const auto near = [](const std::string& cut, int key) {
    return cut > KeyOfPart(key - 100) && cut < KeyOfPart(key + 100);
  };
  EXPECT_TRUE(near(cuts[0], 2250)) << cuts[0];
  EXPECT_TRUE(near(cuts[1], 5000)) << cuts[1];
  EXPECT_TRUE(near(cuts[2], 20750)) << cuts[2];
}

TEST_F(MergePartsTest, NoPartIsSmallerThanAsked) {
  AddRun(0, 4000, 1);
  EXPECT_EQ(MergeCuts(plan_, 8, bytes_ / 3).size(), 2u);
  EXPECT_EQ(MergeCuts(plan_, 8, bytes_ / 2).size(), 1u);
  EXPECT_EQ(MergeCuts(plan_, 8, bytes_ / 2 + 1).size(), 0u);
  EXPECT_EQ(MergeCuts(plan_, 1, 1).size(), 0u);
}

TEST_F(MergePartsTest, WhatWritesNothingOrReplacesASegmentIsNotCut) {
  AddRun(0, 4000, 1);
  ASSERT_EQ(MergeCuts(plan_, 2, 1).size(), 1u);
  for (bool CompactionPlan::*kind :
       {&CompactionPlan::in_place, &CompactionPlan::move_only, &CompactionPlan::remove_only}) {
    CompactionPlan plan = plan_;
    plan.*kind = true;
    EXPECT_EQ(MergeCuts(plan, 2, 1).size(), 0u);
  }
}

TEST_F(MergePartsTest, TheVersionsOfOneKeyAreNotCut) {
  std::vector<TestRecord> records;
  for (SequenceNumber sequence = 8000; sequence > 4000; --sequence)
    records.push_back({KeyOfPart(1), sequence, std::string(400, 'v')});
  CompactionContext context;
  // A flush drops versions that nobody sees, so each one is held.
  for (SequenceNumber sequence = 4000; sequence < 8000; ++sequence)
    context.snapshots.push_back(sequence);
  context.file_system = PosixFileSystem();
  context.directory = directory_.path();
  context.options = &options_;
  context.caches = &caches_;
  context.next_file_number = [this] { return next_number_++; };
  VectorIterator input(std::move(records));
  const auto flushed = RunFlush(&input, {}, {4000, 4000 * 500}, false, nullptr, context);
  ASSERT_TRUE(flushed.ok()) << flushed.status();
  ASSERT_EQ(flushed->records_written, 4000u);
  plan_.inputs.push_back({0, flushed->segments});
  EXPECT_EQ(MergeCuts(plan_, 4, 1).size(), 0u);
}

TEST_F(MergePartsTest, CutsHoldAGeneration) {
  std::vector<TestRecord> records;
  for (NamespaceGeneration generation : {1u, 0x01000000u, 0x02000000u}) {
    for (int i = 0; i < 100; ++i) {
      records.push_back({FirstTreeKey(generation) + std::to_string(1000 + i), ++sequence_,
                         std::string(4000, 'v')});
    }
  }
  AddRun(std::move(records));
  const std::vector<std::string> cuts = MergeCuts(plan_, 100, 1);
  EXPECT_GT(cuts.size(), 10u);
  for (size_t i = 0; i < cuts.size(); ++i) {
    EXPECT_GE(cuts[i].size(), kGenerationSize);
    EXPECT_TRUE(i == 0 || cuts[i - 1] < cuts[i]);
  }
}

TEST(MergePartTest, PartsLieBetweenTheCuts) {
  const std::vector<std::string> cuts = {"cccc", "ffff"};
  const std::vector<MergePart> parts = PartsBetween(cuts);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].lower + "-" + parts[0].upper, "-cccc");
  EXPECT_EQ(parts[1].lower + "-" + parts[1].upper, "cccc-ffff");
  EXPECT_EQ(parts[2].lower + "-" + parts[2].upper, "ffff-");
  EXPECT_EQ(PartsBetween({}).size(), 1u);
}

TEST(MergePartTest, TombstonesAreClipped) {
  const std::vector<RangeTombstone> all = {{"aaaa", "bbbb", 1},
                                           {"aaaa", "dddd", 2},
                                           {"cccc", "ffff", 3},
                                           {"eeee", "gggg", 4},
                                           {"ffff", "gggg", 5}};
  const std::vector<RangeTombstone> clipped = {
      {"cccc", "dddd", 2}, {"cccc", "ffff", 3}, {"eeee", "ffff", 4}};
  EXPECT_EQ(ClipTo({"cccc", "ffff"}, all), clipped);
  EXPECT_EQ(ClipTo({}, all), all);
}

}  // namespace
}  // namespace varve
