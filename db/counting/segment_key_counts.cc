#include "db/counting/segment_key_counts.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace varve {
namespace {

using Segments = std::unordered_map<uint64_t, SegmentKeyCounts::UncountedSegment>;

Segments SegmentsByNumber(const Version& version) {
  Segments segments;
  for (size_t run = 0; run < version.runs().size(); ++run) {
    for (const std::shared_ptr<Segment>& segment : version.runs()[run]->segments) {
      segments[segment->info().number] = {run, segment};
    }
  }
  return segments;
}

// Whether the segment says what it changes: what it holds, where no run behind `run` overlaps it.
bool TellsByItself(const Version& version, size_t run, const SegmentInfo& segment) {
  if (segment.of_clones || !segment.expiry_is_counted) return false;
  for (size_t older = run + 1; older < version.runs().size(); ++older) {
    const Run& below = *version.runs()[older];
    const size_t index = below.IndexOf(segment.smallest);
    if (index < below.segments.size() && Overlap(below.segments[index]->info(), segment))
      return false;
  }
  return true;
}

}  // namespace

std::vector<uint64_t> NumbersOf(const std::vector<std::shared_ptr<Segment>>& segments) {
  std::vector<uint64_t> numbers;
  for (const std::shared_ptr<Segment>& segment : segments)
    numbers.push_back(segment->info().number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

SegmentKeyCounts::Sum SegmentKeyCounts::Add(const Version& version) const {
  Sum sum;
  std::unordered_set<uint64_t> grouped;
  for (const CountedGroup& group : groups_) {
    sum.counted.Add(group.change);
    grouped.insert(group.segments.begin(), group.segments.end());
  }
  for (size_t run = 0; run < version.runs().size(); ++run) {
    for (const std::shared_ptr<Segment>& segment : version.runs()[run]->segments) {
      if (grouped.contains(segment->info().number)) continue;
      if (TellsByItself(version, run, segment->info())) {
        sum.counted.Add(segment->info().live);
      } else {
        sum.uncounted.push_back({run, segment});
      }
    }
  }
  return sum;
}

size_t SegmentKeyCounts::UncountedRuns(const Version& version) const {
  const Sum sum = Add(version);
  size_t runs = sum.uncounted.empty() ? 0 : sum.uncounted.back().run + 1;
  const Segments segments = SegmentsByNumber(version);
  for (const CountedGroup& group : groups_) {
    for (const uint64_t number : group.segments) runs = std::max(runs, segments.at(number).run + 1);
  }
  return runs;
}

void SegmentKeyCounts::Record(const Version& version, CountedGroup group) {
  const Segments segments = SegmentsByNumber(version);
  for (const uint64_t number : group.segments) {
    if (!segments.contains(number)) return;
  }
  const std::unordered_set<uint64_t> numbers(group.segments.begin(), group.segments.end());
  std::erase_if(groups_, [&](const CountedGroup& other) {
    return std::any_of(other.segments.begin(), other.segments.end(),
                       [&](uint64_t number) { return numbers.contains(number); });
  });
  groups_.push_back(std::move(group));
}

void SegmentKeyCounts::Follow(const Version& version, const CompactionPlan& plan,
                              const std::vector<std::shared_ptr<Segment>>& outputs, bool filtered) {
  if (plan.move_only) return;
  std::vector<std::shared_ptr<Segment>> inputs;
  for (const CompactionPlan::Input& input : plan.inputs) {
    inputs.insert(inputs.end(), input.segments.begin(), input.segments.end());
  }
  const std::vector<uint64_t> leaving = NumbersOf(inputs);
  const auto leaves = [&](uint64_t number) {
    return std::binary_search(leaving.begin(), leaving.end(), number);
  };

  CountedGroup merged{NumbersOf(outputs), {}};
  bool all_counted = !filtered && !plan.remove_only;
  std::unordered_set<uint64_t> grouped;
  std::erase_if(groups_, [&](const CountedGroup& group) {
    const size_t of_group = std::count_if(group.segments.begin(), group.segments.end(), leaves);
    if (of_group == 0) return false;
    all_counted &= of_group == group.segments.size();
    grouped.insert(group.segments.begin(), group.segments.end());
    merged.change.Add(group.change);
    return true;
  });
  const Segments segments = SegmentsByNumber(version);
  for (const std::shared_ptr<Segment>& input : inputs) {
    if (!all_counted) break;
    if (grouped.contains(input->info().number)) continue;
    const auto found = segments.find(input->info().number);
    all_counted =
        found != segments.end() && TellsByItself(version, found->second.run, input->info());
    merged.change.Add(input->info().live);
  }
  if (filtered || plan.remove_only) {
    std::erase_if(groups_, [&](const CountedGroup& group) {
      return std::any_of(group.segments.begin(), group.segments.end(), [&](uint64_t number) {
        const auto found = segments.find(number);
        return found == segments.end() ||
               std::any_of(inputs.begin(), inputs.end(),
                           [&](const std::shared_ptr<Segment>& input) {
                             return Overlap(input->info(), found->second.segment->info());
                           });
      });
    });
  }
  if (!all_counted || outputs.empty()) return;
  groups_.push_back(std::move(merged));
}

void SegmentKeyCounts::Tidy(const Version& version) {
  if (groups_.empty()) return;
  const Segments segments = SegmentsByNumber(version);
  std::erase_if(groups_, [&](const CountedGroup& group) {
    bool told_anyway = true;
    for (const uint64_t number : group.segments) {
      const auto found = segments.find(number);
      if (found == segments.end()) return true;
      told_anyway =
          told_anyway && TellsByItself(version, found->second.run, found->second.segment->info());
    }
    return told_anyway;
  });
}

}  // namespace varve
