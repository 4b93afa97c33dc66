#include "varve/compaction_picker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "db/compaction/compaction_planner.h"
#include "db/version/version_edit.h"
#include "fmt/format.h"
#include "type/tree_key.h"
#include "unit-tests/testing/memory_segment.h"

namespace varve {
namespace {

using testing::MemorySegment;

constexpr uint64_t kMiB = 1 << 20;

std::string PickedKey(uint64_t number) { return FirstTreeKey(1) + fmt::format("{:012}", number); }
uint64_t NumberOf(const std::string& key) { return std::stoull(key.substr(kGenerationSize)); }

// A tree of segments that have a size and a key range; a merge makes as many bytes as go in.
class Tree {
 public:
  explicit Tree(uint64_t segment_size = 128 * kMiB) { options_.segment_size = segment_size; }

  void Flush(uint64_t smallest, uint64_t largest, uint64_t bytes) {
    flushed_bytes_ += bytes;
    Install(ApplyFlush(*version_, {MemorySegment::Sized(next_number_++, PickedKey(smallest),
                                                        PickedKey(largest), bytes)}));
  }

  // Until the tree is in shape. Checks what every plan has to keep.
  void CompactAll(bool in_burst = false) {
    while (const std::optional<CompactionPlan> plan = Pick(in_burst)) Run(*plan);
    EXPECT_EQ(Debt(), 0);
  }

  void Run(const CompactionPlan& plan) {
    CheckOrder(plan);
    Install(ApplyCompaction(*version_, plan, plan.remove_only ? Segments() : Merge(plan)));
    CheckShape();
  }

  const Version& version() const { return *version_; }
  const EngineOptions& options() const { return options_; }
  uint64_t flushed_bytes() const { return flushed_bytes_; }
  uint64_t merged_bytes() const { return merged_bytes_; }
  double Debt() const { return picker_->Debt(version_->shape(), options_); }
  std::optional<CompactionPlan> Pick(bool in_burst = false) const {
    const std::optional<CompactionPick> pick = picker_->Pick(version_->shape(), options_, in_burst);
    if (!pick) return std::nullopt;
    absl::StatusOr<CompactionPlan> plan = PlanOf(*version_, *pick);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? std::optional(*std::move(plan)) : std::nullopt;
  }

 private:
  using Segments = std::vector<std::shared_ptr<Segment>>;

  void Install(std::vector<Level> levels) {
    version_ = std::make_shared<Version>(std::move(levels), version_.get());
  }

  Segments Merge(const CompactionPlan& plan) {
    Segments inputs;
    uint64_t bytes = 0;
    for (const CompactionPlan::Input& input : plan.inputs) {
      for (const std::shared_ptr<Segment>& segment : input.segments) {
        inputs.push_back(segment);
        bytes += segment->info().file_size;
      }
    }
    std::sort(inputs.begin(), inputs.end(),
              [](const auto& a, const auto& b) { return a->info().smallest < b->info().smallest; });
    if (plan.move_only) {
      for (size_t i = 1; i < inputs.size(); ++i)
        EXPECT_FALSE(Overlap(inputs[i - 1]->info(), inputs[i]->info()));
      return inputs;
    }
    merged_bytes_ += bytes;
    Segments outputs;
    // Inputs that touch each other.
    for (size_t begin = 0, end; begin < inputs.size(); begin = end) {
      uint64_t largest = NumberOf(inputs[begin]->info().largest);
      uint64_t part = inputs[begin]->info().file_size;
      for (end = begin + 1;
           end < inputs.size() && NumberOf(inputs[end]->info().smallest) <= largest; ++end) {
        largest = std::max(largest, NumberOf(inputs[end]->info().largest));
        part += inputs[end]->info().file_size;
      }
      Cut(NumberOf(inputs[begin]->info().smallest), largest, part, &outputs);
    }
    return outputs;
  }

  void Cut(uint64_t smallest, uint64_t largest, uint64_t bytes, Segments* outputs) {
    const uint64_t count = std::min((bytes + options_.segment_size - 1) / options_.segment_size,
                                    largest - smallest + 1);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t from = smallest + (largest + 1 - smallest) * i / count;
      const uint64_t to = smallest + (largest + 1 - smallest) * (i + 1) / count - 1;
      const uint64_t share = bytes * (i + 1) / count - bytes * i / count;
      outputs->push_back(
          MemorySegment::Sized(next_number_++, PickedKey(from), PickedKey(to), share));
    }
  }

  // What goes in is newer than everything of its key range that is left between it and the place of
  // the output.
  void CheckOrder(const CompactionPlan& plan) {
    std::vector<uint64_t> numbers;
    for (const auto& input : plan.inputs) {
      for (const auto& segment : input.segments) numbers.push_back(segment->info().number);
    }
    const auto goes_in = [&numbers](const std::shared_ptr<Segment>& segment) {
      return std::find(numbers.begin(), numbers.end(), segment->info().number) != numbers.end();
    };
    for (const auto& input : plan.inputs) {
      for (const auto& segment : input.segments) {
        for (size_t level = static_cast<size_t>(input.level); level < version_->levels().size();
             ++level) {
          const bool is_below = static_cast<int>(level) >= plan.output_level;
          if (is_below && !plan.drops_tombstones && !plan.joins_last_run) break;
          for (const auto& run : version_->levels()[level].runs) {
            if (level == static_cast<size_t>(input.level) &&
                run.segments.front()->info().number > segment->info().number)
              continue;
            for (const auto& other : run.segments) {
              if (goes_in(other)) continue;
              EXPECT_FALSE(Overlap(other->info(), segment->info()))
                  << other->info().number << " " << segment->info().number;
            }
          }
        }
      }
    }
  }

  void CheckShape() const {
    for (const Level& level : version_->levels()) {
      for (const auto& run : level.runs) {
        ASSERT_FALSE(run.segments.empty());
        for (size_t i = 1; i < run.segments.size(); ++i) {
          ASSERT_LT(run.segments[i - 1]->info().largest, run.segments[i]->info().smallest);
        }
      }
    }
    if (version_->levels().size() > 1) {
      ASSERT_LE(version_->levels().back().runs.size(), 1u);
    }
  }

  const std::shared_ptr<const CompactionPicker> picker_ = LazyLevelingPicker();
  EngineOptions options_;
  std::shared_ptr<Version> version_ = std::make_shared<Version>();
  uint64_t next_number_ = 1;
  uint64_t flushed_bytes_ = 0;
  uint64_t merged_bytes_ = 0;
};

TEST(LazyLevelingTest, AnEmptyTreeAndATreeInShapeAreLeftAlone) {
  Tree tree;
  EXPECT_FALSE(tree.Pick());
  EXPECT_EQ(tree.Debt(), 0);
  for (int i = 0; i < tree.options().runs_per_level - 1; ++i) {
    tree.Flush(0, 1000, 64 * kMiB);
    EXPECT_FALSE(tree.Pick());
  }
}

TEST(LazyLevelingTest, TheFirstMergeMakesTheLastLevel) {
  Tree tree;
  for (int i = 0; i < 4; ++i) tree.Flush(0, 1000, 64 * kMiB);
  const std::optional<CompactionPlan> plan = tree.Pick();
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->inputs.size(), 4u);
  EXPECT_EQ(plan->output_level, 1);
  EXPECT_TRUE(plan->joins_last_run);
  EXPECT_TRUE(plan->drops_tombstones);
  EXPECT_FALSE(plan->move_only);
  tree.Run(*plan);
  ASSERT_EQ(tree.version().levels().size(), 2u);
  EXPECT_EQ(tree.version().levels()[1].runs.size(), 1u);
}

TEST(LazyLevelingTest, ABurstGathersTwiceAsManyRunsInTheFirstLevelAlone) {
  Tree tree;
  for (int i = 0; i < 7; ++i) {
    tree.Flush(0, 1000, 64 * kMiB);
    EXPECT_FALSE(tree.Pick(/*in_burst=*/true));
    EXPECT_EQ(tree.Pick().has_value(), i >= 3);
  }
  EXPECT_EQ(tree.Debt(), 0);
  tree.Flush(0, 1000, 64 * kMiB);
  const std::optional<CompactionPlan> plan = tree.Pick(/*in_burst=*/true);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->inputs.size(), 8u);

  Tree deeper;
  for (int i = 0; i < 8; ++i) deeper.Flush(0, 1000000, 2000 * kMiB);
  deeper.CompactAll(/*in_burst=*/true);
  ASSERT_EQ(deeper.version().levels().size(), 2u);
  for (int level_1_runs = 1; level_1_runs <= 3; ++level_1_runs) {
    for (int i = 0; i < 8; ++i) deeper.Flush(0, 1000000, 64 * kMiB);
    deeper.CompactAll(/*in_burst=*/true);
    ASSERT_EQ(deeper.version().levels().size(), 3u);
    EXPECT_EQ(deeper.version().levels()[1].runs.size(), level_1_runs);
  }
  for (int i = 0; i < 8; ++i) deeper.Flush(0, 1000000, 64 * kMiB);
  const std::optional<CompactionPlan> all = deeper.Pick(/*in_burst=*/true);
  ASSERT_TRUE(all);
  EXPECT_GE(all->inputs.size(), 11u) << "a second level that the merge would fill goes along";
}

TEST(LazyLevelingTest, RunsFlushedDuringAMergeStayAboveIt) {
  Tree tree;
  for (int i = 0; i < 4; ++i) tree.Flush(0, 1000, 64 * kMiB);
  const std::optional<CompactionPlan> plan = tree.Pick();
  tree.Flush(0, 1000, 10 * kMiB);
  tree.Run(*plan);
  ASSERT_EQ(tree.version().levels().size(), 2u);
  ASSERT_EQ(tree.version().levels()[0].runs.size(), 1u);
  EXPECT_EQ(tree.version().levels()[0].bytes(), 10 * kMiB);
  EXPECT_EQ(tree.version().levels()[1].bytes(), 256 * kMiB);
}

TEST(LazyLevelingTest, KeysInOrderAreNeverWrittenAgain) {
  Tree tree;
  for (uint64_t i = 0; i < 200; ++i) {
    tree.Flush(i * 1000, i * 1000 + 999, 64 * kMiB);
    tree.CompactAll();
  }
  EXPECT_EQ(tree.merged_bytes(), 0u);
  EXPECT_EQ(tree.version().levels().back().runs.size(), 1u);
  EXPECT_GE(tree.version().levels().back().runs[0].segments.size(), 197u);
}

TEST(LazyLevelingTest, SmallSegmentsAreMergedRatherThanMoved) {
  Tree tree;
  for (uint64_t i = 0; i < 4; ++i) tree.Flush(i * 1000, i * 1000 + 999, kMiB);
  const std::optional<CompactionPlan> plan = tree.Pick();
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->move_only);
}

TEST(LazyLevelingTest, ASmallMergeDoesNotRewriteALargeLastLevel) {
  Tree tree;
  for (int i = 0; i < 4; ++i) tree.Flush(0, 1000000, 2000 * kMiB);
  tree.CompactAll();
  ASSERT_EQ(tree.version().levels().size(), 2u);
  const uint64_t before = tree.merged_bytes();
  for (int i = 0; i < 4; ++i) tree.Flush(0, 1000000, 64 * kMiB);
  tree.CompactAll();
  EXPECT_EQ(tree.merged_bytes() - before, 256 * kMiB);
  ASSERT_EQ(tree.version().levels().size(), 3u);
  EXPECT_EQ(tree.version().levels()[1].runs.size(), 1u);
  EXPECT_EQ(tree.version().levels()[2].bytes(), 8000 * kMiB);
}

TEST(LazyLevelingTest, OnlyTheOverlappingPartOfTheLastRunIsRewritten) {
  Tree tree;
  for (int i = 0; i < 4; ++i) tree.Flush(0, 999999, 3200 * kMiB);
  tree.CompactAll();
  const uint64_t before = tree.merged_bytes();
  for (int i = 0; i < 2; ++i) {  // at both ends of the keys
    tree.Flush(10, 20, 64 * kMiB);
    tree.Flush(999000, 999100, 64 * kMiB);
  }
  tree.CompactAll();
  EXPECT_EQ(tree.merged_bytes() - before, (4 * 64 + 2 * 128) * kMiB);
  EXPECT_EQ(tree.version().levels().size(), 2u);
}

// The figures of docs/compaction.md: keys at random, 64 MiB a flush, four runs a level.
struct Amplification {
  double merged = 0;  // bytes, for each byte flushed
  uint64_t most_runs = 0;
  double runs = 0;  // on average
  double least_share_of_last_level = 1;
};

Amplification AfterManyFlushes(bool in_burst) {
  constexpr int kFlushes = 3000;
  Tree tree;
  Amplification result;
  for (int i = 1; i <= kFlushes; ++i) {
    tree.Flush(0, 1000000000, 64 * kMiB);
    tree.CompactAll(in_burst);
    const uint64_t runs = tree.version().runs().size();
    result.most_runs = std::max(result.most_runs, runs);
    result.runs += static_cast<double>(runs) / kFlushes;
    if (tree.version().levels().size() < 2) continue;
    result.least_share_of_last_level =
        std::min(result.least_share_of_last_level,
                 static_cast<double>(tree.version().levels().back().bytes()) /
                     static_cast<double>(tree.version().bytes()));
  }
  result.merged =
      static_cast<double>(tree.merged_bytes()) / static_cast<double>(tree.flushed_bytes());
  ::testing::Test::RecordProperty(
      in_burst ? "in_burst" : "at_rest",
      fmt::format(
          "{:.2f} bytes merged a byte flushed, {:.1f} runs, {} at most, last level {:.2f} at least",
          result.merged, result.runs, result.most_runs, result.least_share_of_last_level));
  return result;
}

TEST(LazyLevelingTest, AmplificationStaysWithinItsBounds) {
  const Amplification at_rest = AfterManyFlushes(/*in_burst=*/false);
  EXPECT_LT(at_rest.merged, 5.0) << "4.76; over all sizes 3.1";
  EXPECT_LE(at_rest.most_runs, 16u) << "three on each of five levels, and the last one";
  EXPECT_GE(at_rest.least_share_of_last_level, 0.39);

  const Amplification in_burst = AfterManyFlushes(/*in_burst=*/true);
  EXPECT_LT(in_burst.merged, 4.0) << "3.62";
  EXPECT_LE(in_burst.most_runs, 20u) << "four more on the first one";
  EXPECT_GE(in_burst.least_share_of_last_level, 0.39);
}

TEST(LazyLevelingTest, MixedWorkKeepsTheShape) {
  std::mt19937 random(3);
  for (int round = 0; round < 10; ++round) {
    Tree tree(8 * kMiB);
    for (int i = 0; i < 150; ++i) {
      const uint64_t from = random() % 100000;
      tree.Flush(from, from + random() % (random() % 2 == 0 ? 100000 : 100),
                 (1 + random() % 64) * kMiB / 8);
      if (random() % 3 != 0) continue;
      if (random() % 10 == 0) {
        const uint64_t lower = random() % 200000;
        const std::optional<CompactionPlan> plan =
            PlanRange(tree.version(), PickedKey(lower), PickedKey(lower + random() % 1000));
        if (plan) tree.Run(*plan);
      }
      tree.CompactAll(/*in_burst=*/random() % 2 == 0);
    }
  }
}

TEST(LazyLevelingTest, DebtGrowsWithEveryRunTooMany) {
  Tree tree;
  double last = 0;
  for (int i = 0; i < 30; ++i) {
    tree.Flush(0, 1000, 64 * kMiB);
    EXPECT_GE(tree.Debt(), last);
    EXPECT_EQ(tree.Debt() > last, i >= 2 * tree.options().runs_per_level)
        << "as many as a burst may gather are in order";
    last = tree.Debt();
  }
  EXPECT_GT(last, 1.0);
  tree.CompactAll();
}

TEST(PlanRangeTest, NothingInTheRangeIsNoPlan) {
  Tree tree;
  EXPECT_FALSE(PlanRange(tree.version(), PickedKey(0), {}));
  tree.Flush(100, 200, kMiB);
  EXPECT_FALSE(PlanRange(tree.version(), PickedKey(0), PickedKey(100)));
  EXPECT_FALSE(PlanRange(tree.version(), PickedKey(201), {}));
  EXPECT_TRUE(PlanRange(tree.version(), PickedKey(200), {}));
  EXPECT_TRUE(PlanRange(tree.version(), PickedKey(0), PickedKey(101)));
}

TEST(PlanRangeTest, OlderSegmentsInTheWayGoAlongAndNewerOnesStay) {
  Tree tree;
  tree.Flush(180, 300, kMiB);  // 1: under the end of 2
  tree.Flush(100, 200, kMiB);  // 2: in the range
  tree.Flush(190, 400, kMiB);  // 3: newer than both, not in the range
  tree.Flush(500, 600, kMiB);  // 4: elsewhere
  const std::optional<CompactionPlan> plan =
      PlanRange(tree.version(), PickedKey(120), PickedKey(130));
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->inputs.size(), 2u);
  EXPECT_EQ(plan->inputs[0].segments[0]->info().number, 2u);
  EXPECT_EQ(plan->inputs[1].segments[0]->info().number, 1u);
  EXPECT_TRUE(plan->drops_tombstones);
  tree.Run(*plan);
  EXPECT_EQ(tree.version().levels()[0].runs.size(), 2u);
  EXPECT_EQ(tree.version().levels()[1].runs.size(), 1u);
}

TEST(PlanRangeTest, TheWholeTreeBecomesOneRun) {
  Tree tree;
  for (int i = 0; i < 7; ++i) {
    tree.Flush(0, 1000, 200 * kMiB);
    if (i == 4) tree.CompactAll();
  }
  tree.Run(*PlanRange(tree.version(), FirstTreeKey(0), {}));
  EXPECT_EQ(tree.version().runs().size(), 1u);
}

// However long a damaged run stays: few runs, and each record is written a few times.
TEST(PlanAroundDamageTest, RunsStayFewAndRecordsAreWrittenFewTimes) {
  Tree tree;
  for (int i = 0; i < 3; ++i) tree.Flush(0, 1000, kMiB);
  tree.version().runs()[1]->segments[0]->NoteDamage();
  for (int i = 0; i < 500; ++i) {
    tree.Flush(0, 1000, kMiB);
    const std::optional<CompactionPlan> wanted = tree.Pick();
    if (!wanted) continue;
    EXPECT_TRUE(ReadsDamage(*wanted));
    while (const std::optional<CompactionPlan> plan =
               PlanAroundDamage(tree.version(), tree.options())) {
      EXPECT_FALSE(ReadsDamage(*plan));
      EXPECT_FALSE(plan->drops_tombstones);
      tree.Run(*plan);
    }
    EXPECT_LE(tree.version().runs().size(), 3u + 3u + 9u);
  }
  EXPECT_LE(tree.merged_bytes(), 500 * kMiB * 9);
}

}  // namespace
}  // namespace varve
