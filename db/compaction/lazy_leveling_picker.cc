// The default shape of the tree. The rules and the arithmetic behind them stand in
// docs/compaction.md.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "varve/compaction_picker.h"

namespace varve {
namespace {

using Segments = std::vector<SegmentShape>;

// Moved segments keep their size for long, so that runs of small ones are rather merged into larger
// ones.
constexpr uint64_t kSmallestMovedPart = 4;
constexpr uint64_t kReferencedShare = 6;

size_t RunsPerLevel(const EngineOptions& options) {
  return static_cast<size_t>(std::max(options.runs_per_level, 2));
}

// A burst gathers more runs in level 0, so that a short one isn't slowed by merges and a long one
// writes less.
constexpr size_t kBurstFactor = 2;

size_t FullFrom(size_t level, const EngineOptions& options, bool in_burst) {
  return RunsPerLevel(options) * (level == 0 && in_burst ? kBurstFactor : 1);
}

// All levels but the last one; the only level of a tree is an upper one.
size_t UpperLevels(const TreeShape& tree) {
  const size_t levels = tree.levels.size();
  return levels <= 1 ? levels : levels - 1;
}

// A choice being made: the segments that go in, and how.
struct Choice {
  struct Input {
    size_t level;
    Segments segments;
  };
  std::vector<Input> inputs;
  CompactionPick pick;

  // Merges the inputs, and the segments of the last run that they overlap, into that run.
  void JoinLastRun(size_t last, const Segments& sorted, const Segments& rewritten,
                   const EngineOptions& options);

  std::optional<CompactionPick> Take() {
    for (const Input& input : inputs) {
      CompactionPick::Input& numbers = pick.inputs.emplace_back();
      numbers.level = static_cast<int>(input.level);
      for (const SegmentShape& segment : input.segments) numbers.segments.push_back(segment.number);
    }
    return std::move(pick);
  }
};

// Returns the inputs' segments by smallest key.
Segments Sorted(const std::vector<Choice::Input>& inputs) {
  Segments sorted;
  for (const Choice::Input& input : inputs) {
    sorted.insert(sorted.end(), input.segments.begin(), input.segments.end());
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const SegmentShape& a, const SegmentShape& b) { return a.smallest < b.smallest; });
  return sorted;
}

// Returns the segments of `run` that overlap one of `inputs`.
Segments Overlapping(const RunShape& run, const Segments& inputs) {
  std::vector<bool> overlaps(run.segments.size(), false);
  for (const SegmentShape& input : inputs) {
    for (size_t i = run.IndexOf(input.smallest); i < run.segments.size(); ++i) {
      if (!run.segments[i].Overlaps(input)) break;
      overlaps[i] = true;
    }
  }
  Segments found;
  for (size_t i = 0; i < overlaps.size(); ++i) {
    if (overlaps[i]) found.push_back(run.segments[i]);
  }
  return found;
}

bool OverlapsFromLevel(const TreeShape& tree, size_t level, const Segments& inputs) {
  for (; level < tree.levels.size(); ++level) {
    for (const RunShape& run : tree.levels[level].runs) {
      if (!Overlapping(run, inputs).empty()) return true;
    }
  }
  return false;
}

uint64_t Bytes(const Segments& segments) {
  uint64_t bytes = 0;
  for (const SegmentShape& segment : segments) bytes += segment.file_size;
  return bytes;
}

// Returns whether the inputs may become a run as they are. In the last run nothing should stay that
// only deletes.
bool CanMove(const Segments& sorted, bool to_last_run, const EngineOptions& options) {
  for (size_t i = 0; i < sorted.size(); ++i) {
    const SegmentShape& info = sorted[i];
    if (to_last_run && info.tombstones + info.range_tombstones > 0) return false;
    if (i > 0 && sorted[i - 1].Overlaps(info)) return false;
  }
  return Bytes(sorted) >= sorted.size() * (options.segment_size / kSmallestMovedPart);
}

void Choice::JoinLastRun(size_t last, const Segments& sorted, const Segments& rewritten,
                         const EngineOptions& options) {
  pick.output_level = static_cast<int>(last);
  pick.joins_last_run = true;
  pick.drops_tombstones = true;
  pick.move_only = rewritten.empty() && CanMove(sorted, /*to_last_run=*/true, options);
  if (!rewritten.empty()) inputs.push_back({last, rewritten});
}

class LazyLeveling final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape& tree, const EngineOptions& options,
                                     bool in_burst) const override {
    if (std::optional<CompactionPick> pick = MoveIngested(tree, options)) return pick;
    const std::vector<LevelShape>& levels = tree.levels;
    const size_t runs_per_level = RunsPerLevel(options);
    const size_t upper_levels = UpperLevels(tree);
    // The fullest level; of equally full ones the smallest.
    size_t first = upper_levels;
    for (size_t i = 0; i < upper_levels; ++i) {
      if (levels[i].runs.size() < FullFrom(i, options, in_burst)) continue;
      if (first == upper_levels || levels[i].runs.size() > levels[first].runs.size()) first = i;
    }
    if (first == upper_levels) return MergeForValues(tree, options);

    Choice choice;
    choice.pick.reason = CompactionReason::kFullLevel;
    size_t target = first;
    const auto take_level = [&] {
      for (const RunShape& run : levels[target].runs)
        choice.inputs.push_back({target, run.segments});
      ++target;
    };
    take_level();
    // A level that this merge would fill goes along: its records are spared the write in between.
    while (target < upper_levels && levels[target].runs.size() + 1 >= runs_per_level) take_level();
    PlaceOutput(tree, target, options, &choice);
    return choice.Take();
  }

  double Debt(const TreeShape& tree, const EngineOptions& options) const override {
    size_t too_many = 0;
    for (size_t i = 0; i < UpperLevels(tree); ++i) {
      const size_t runs = tree.levels[i].runs.size();
      const size_t in_shape = FullFrom(i, options, /*in_burst=*/true);
      if (runs > in_shape) too_many += runs - in_shape;
    }
    return static_cast<double>(too_many) / static_cast<double>(4 * RunsPerLevel(options));
  }

 private:
  // An ingest that overlaps nothing older belongs to the last run, as it is: merges with the runs
  // beside it would write it again for nothing.
  static std::optional<CompactionPick> MoveIngested(const TreeShape& tree,
                                                    const EngineOptions& options) {
    if (tree.levels.empty()) return std::nullopt;
    const std::vector<RunShape>& runs = tree.levels.front().runs;
    const size_t last = std::max<size_t>(tree.levels.size(), 2) - 1;
    for (size_t i = 0; i < runs.size(); ++i) {
      const Segments& segments = runs[i].segments;
      const bool is_ingested =
          std::all_of(segments.begin(), segments.end(),
                      [](const SegmentShape& each) { return each.is_ingested; });
      if (!is_ingested || !CanMove(segments, /*to_last_run=*/true, options)) continue;
      bool overlaps = OverlapsFromLevel(tree, 1, segments);
      for (size_t older = i + 1; older < runs.size(); ++older)
        overlaps |= !Overlapping(runs[older], segments).empty();
      if (overlaps) continue;
      Choice choice;
      choice.inputs.push_back({0, segments});
      choice.pick.output_level = static_cast<int>(last);
      choice.pick.joins_last_run = choice.pick.move_only = true;
      return choice.Take();
    }
    return std::nullopt;
  }

  // What is overwritten is known, and its space can be won back, only once it has met its successor
  // in a merge. Where values lie elsewhere, that costs little beside what it tells: then all levels
  // are merged as soon as the upper ones refer to a sixth of what the last one does.
  static std::optional<CompactionPick> MergeForValues(const TreeShape& tree,
                                                      const EngineOptions& options) {
    const std::vector<LevelShape>& levels = tree.levels;
    const size_t upper_levels = UpperLevels(tree);
    Choice choice;
    choice.pick.reason = CompactionReason::kOverwrittenValues;
    uint64_t upper_referenced = 0;
    for (size_t i = 0; i < upper_levels; ++i) {
      for (const RunShape& run : levels[i].runs) {
        upper_referenced += run.referenced_bytes();
        choice.inputs.push_back({i, run.segments});
      }
    }
    const size_t last = std::max<size_t>(levels.size(), 2) - 1;
    const bool has_last_run = last < levels.size() && !levels[last].runs.empty();
    const uint64_t last_referenced =
        has_last_run ? levels[last].runs.front().referenced_bytes() : 0;
    if (upper_referenced == 0 || upper_referenced * kReferencedShare < last_referenced)
      return std::nullopt;
    const Segments sorted = Sorted(choice.inputs);
    const Segments rewritten =
        has_last_run ? Overlapping(levels[last].runs.front(), sorted) : Segments();
    if (Bytes(rewritten) + Bytes(sorted) > upper_referenced) return std::nullopt;
    choice.JoinLastRun(last, sorted, rewritten, options);
    return choice.Take();
  }

  // The inputs are all runs of the levels above `target`: joins them with the last run if that
  // costs little enough, else makes them a run of `target`, or of a level opened for it where
  // `target` is the last one.
  static void PlaceOutput(const TreeShape& tree, size_t target, const EngineOptions& options,
                          Choice* choice) {
    const std::vector<LevelShape>& levels = tree.levels;
    const Segments sorted = Sorted(choice->inputs);
    const size_t last = std::max<size_t>(levels.size(), 2) - 1;
    bool nothing_between = true;
    for (size_t i = target; i < last; ++i) nothing_between &= levels[i].runs.empty();
    if (nothing_between) {
      const bool has_last_run = last < levels.size() && !levels[last].runs.empty();
      const Segments rewritten =
          has_last_run ? Overlapping(levels[last].runs.front(), sorted) : Segments();
      if (2 * Bytes(rewritten) <= RunsPerLevel(options) * Bytes(sorted)) {
        choice->JoinLastRun(last, sorted, rewritten, options);
        return;
      }
    }
    // Too much would be written for too little: gather a level of such runs first.
    CompactionPick& pick = choice->pick;
    pick.output_level = static_cast<int>(target);
    pick.pushes_last_level_down = target == last;
    pick.drops_tombstones = !OverlapsFromLevel(tree, target, sorted);
    pick.move_only = CanMove(sorted, /*to_last_run=*/false, options);
  }
};

}  // namespace

uint64_t RunShape::bytes() const { return Bytes(segments); }

uint64_t RunShape::referenced_bytes() const {
  uint64_t bytes = 0;
  for (const SegmentShape& segment : segments) bytes += segment.referenced_bytes;
  return bytes;
}

size_t RunShape::IndexOf(std::string_view key) const {
  const auto first =
      std::partition_point(segments.begin(), segments.end(),
                           [key](const SegmentShape& segment) { return !segment.ReachesTo(key); });
  return static_cast<size_t>(first - segments.begin());
}

std::shared_ptr<const CompactionPicker> LazyLevelingPicker() {
  return std::make_shared<LazyLeveling>();
}

}  // namespace varve
