#include "db/compaction/compaction_planner.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// More generations than this in one segment are not looked through.
constexpr uint64_t kMaxGenerationsLookedAt = 4096;

bool GenerationsAreDead(const SegmentInfo& segment,
                        const std::function<bool(NamespaceGeneration)>& is_live) {
  if (!is_live) return false;
  const uint64_t first = GenerationOf(segment.smallest);
  uint64_t end = uint64_t{GenerationOf(segment.largest)} + 1;
  if (segment.largest_is_exclusive && segment.largest.size() == kGenerationSize)
    --end;  // ends where that generation begins
  if (end - first > kMaxGenerationsLookedAt) return false;
  for (uint64_t generation = first; generation < end; ++generation) {
    if (is_live(static_cast<NamespaceGeneration>(generation))) return false;
  }
  return true;
}

bool AnyIsDamaged(const std::vector<std::shared_ptr<Segment>>& segments) {
  return std::any_of(segments.begin(), segments.end(),
                     [](const std::shared_ptr<Segment>& segment) { return segment->is_damaged(); });
}

// Returns the segments that the input names; none if no run of its level has all of them in this
// order.
std::vector<std::shared_ptr<Segment>> SegmentsOf(const Version& version,
                                                 const CompactionPick::Input& input) {
  std::vector<std::shared_ptr<Segment>> found;
  if (input.level < 0 || static_cast<size_t>(input.level) >= version.levels().size()) return found;
  for (const Run& run : version.levels()[static_cast<size_t>(input.level)].runs) {
    for (const std::shared_ptr<Segment>& segment : run.segments) {
      if (found.size() == input.segments.size()) break;
      if (segment->info().number == input.segments[found.size()]) found.push_back(segment);
    }
    if (found.size() == input.segments.size()) return found;
    found.clear();
  }
  return found;
}

// Returns whether range tombstones newer than all of the segment cover it without a gap, and
// neither a snapshot nor a horizon lies between.
bool IsCovered(const SegmentInfo& segment, const RangeTombstoneList& tombstones,
               const std::vector<SequenceNumber>& snapshots, const KeptVersions& kept) {
  // A snapshot that sees anything of the segment has to see what covers it too, as the present
  // does.
  const auto snapshot =
      std::lower_bound(snapshots.begin(), snapshots.end(), segment.smallest_sequence);
  SequenceNumber at = snapshot == snapshots.end() ? kMaxSequence : *snapshot;
  const NamespaceGeneration first = GenerationOf(segment.smallest);
  at = std::min(at, first == GenerationOf(segment.largest) ? kept.From(first) : kept.oldest());
  std::string_view reached = segment.smallest;
  for (const RangeTombstoneList::Fragment* fragment = tombstones.Covering(reached, at);
       fragment != nullptr; fragment = tombstones.Covering(reached, at)) {
    if (tombstones.CoveringSequence(reached, at) <= segment.largest_sequence) return false;
    reached = fragment->end;
    if (reached > segment.largest || (segment.largest_is_exclusive && reached == segment.largest))
      return true;
  }
  return false;
}

}  // namespace

std::string_view NameOf(CompactionReason reason) {
  static constexpr std::string_view kNames[] = {"picker", "full_level",    "overwritten_values",
                                                "range",  "dead_segments", "value_garbage",
                                                "damage"};
  static_assert(std::size(kNames) == kCompactionReasons);
  return kNames[static_cast<size_t>(reason)];
}

absl::StatusOr<CompactionPlan> PlanOf(const Version& version, const CompactionPick& pick) {
  CompactionPlan plan;
  // A program's own picker may say anything.
  const bool is_known = static_cast<size_t>(pick.reason) < kCompactionReasons;
  plan.reason = is_known ? pick.reason : CompactionReason::kPicker;
  plan.output_level = pick.output_level;
  plan.joins_last_run = pick.joins_last_run;
  plan.move_only = pick.move_only;
  plan.drops_tombstones = pick.drops_tombstones;
  plan.pushes_last_level_down = pick.pushes_last_level_down;
  for (const CompactionPick::Input& input : pick.inputs) {
    std::vector<std::shared_ptr<Segment>> segments = SegmentsOf(version, input);
    if (segments.empty()) {
      return absl::InvalidArgumentError(fmt::format(
          "the compaction picker chose segments that no run of level {} has in this order",
          input.level));
    }
    plan.inputs.push_back({input.level, std::move(segments)});
  }
  if (plan.inputs.empty() || pick.output_level < 0)
    return absl::InvalidArgumentError(
        "the compaction picker chose a merge of nothing or to nowhere");
  return plan;
}

bool ReadsDamage(const CompactionPlan& plan) {
  if (plan.move_only || plan.remove_only) return false;
  return std::any_of(
      plan.inputs.begin(), plan.inputs.end(),
      [](const CompactionPlan::Input& input) { return AnyIsDamaged(input.segments); });
}

std::optional<CompactionPlan> PlanAroundDamage(const Version& version,
                                               const EngineOptions& options) {
  const auto wanted = static_cast<size_t>(std::max(options.runs_per_level, 2));
  const std::vector<Level>& levels = version.levels();
  const size_t upper_levels = levels.size() <= 1 ? levels.size() : levels.size() - 1;
  CompactionPlan plan;
  plan.reason = CompactionReason::kDamage;
  uint64_t newer_bytes = 0;  // of the runs taken
  for (size_t level = 0; level < upper_levels; ++level) {
    for (const Run& run : levels[level].runs) {
      if (AnyIsDamaged(run.segments)) {
        plan.inputs.clear();
        newer_bytes = 0;
        continue;
      }
      plan.inputs.push_back({static_cast<int>(level), run.segments});
      if (plan.inputs.size() >= wanted && newer_bytes >= run.bytes()) {
        plan.output_level = static_cast<int>(level);
        return plan;
      }
      newer_bytes += run.bytes();
    }
  }
  return std::nullopt;
}

std::optional<CompactionPlan> PlanRange(const Version& version, std::string_view lower,
                                        std::string_view upper) {
  CompactionPlan plan;
  plan.reason = CompactionReason::kRange;
  std::string begin(lower);
  std::string end(upper);  // empty: no end
  // From newest to oldest, the range grows by what is taken: older segments below it must not stay
  // above the output.
  for (size_t level = 0; level < version.levels().size(); ++level) {
    for (const Run& run : version.levels()[level].runs) {
      CompactionPlan::Input input{static_cast<int>(level), {}};
      for (size_t i = run.IndexOf(begin); i < run.segments.size(); ++i) {
        if (!end.empty() && run.segments[i]->info().smallest >= end) break;
        input.segments.push_back(run.segments[i]);
      }
      if (input.segments.empty()) continue;
      begin = std::min(begin, input.segments.front()->info().smallest);
      const SegmentInfo& last = input.segments.back()->info();
      if (!end.empty() && ReachesTo(last, end)) {
        end = last.largest;
        if (!last.largest_is_exclusive) end.push_back('\0');  // the next key
      }
      plan.inputs.push_back(std::move(input));
    }
  }
  if (plan.inputs.empty()) return std::nullopt;
  plan.output_level = std::max(1, static_cast<int>(version.levels().size()) - 1);
  plan.joins_last_run = true;
  plan.drops_tombstones = true;
  plan.recompresses_values = true;
  return plan;
}

std::optional<CompactionPlan> PlanDeadSegments(
    const Version& version, const std::vector<SequenceNumber>& snapshots, const KeptVersions& kept,
    const std::function<bool(NamespaceGeneration)>& is_live) {
  CompactionPlan plan;
  plan.reason = CompactionReason::kDeadSegments;
  for (size_t level = 0; level < version.levels().size(); ++level) {
    for (const Run& run : version.levels()[level].runs) {
      CompactionPlan::Input input{static_cast<int>(level), {}};
      for (const std::shared_ptr<Segment>& segment : run.segments) {
        if (GenerationsAreDead(segment->info(), is_live) ||
            IsCovered(segment->info(), version.range_tombstones(), snapshots, kept)) {
          input.segments.push_back(segment);
        }
      }
      if (!input.segments.empty()) plan.inputs.push_back(std::move(input));
    }
  }
  if (plan.inputs.empty()) return std::nullopt;
  plan.remove_only = true;
  return plan;
}

}  // namespace varve
