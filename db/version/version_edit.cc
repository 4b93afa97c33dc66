#include "db/version/version_edit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace varve {
namespace {

// Takes the segments numbered `numbers` (ascending) out of the level, and runs that end up empty.
// Returns the place of the newest run that lost some; 0 if none did.
size_t RemoveSegments(const std::vector<uint64_t>& numbers, Level* level) {
  size_t place = level->runs.size();
  for (size_t i = level->runs.size(); i-- > 0;) {
    std::vector<std::shared_ptr<Segment>>& segments = level->runs[i].segments;
    const size_t erased =
        std::erase_if(segments, [&numbers](const std::shared_ptr<Segment>& segment) {
          return std::binary_search(numbers.begin(), numbers.end(), segment->info().number);
        });
    if (erased > 0) place = i;
  }
  if (place == level->runs.size()) place = 0;
  std::erase_if(level->runs, [](const Run& run) { return run.segments.empty(); });
  return std::min(place, level->runs.size());
}

void RemoveEmptyLastLevels(std::vector<Level>* levels) {
  while (levels->size() > 1 && levels->back().runs.empty() &&
         (levels->size() == 2 || (*levels)[levels->size() - 2].runs.size() <= 1)) {
    levels->pop_back();
  }
}

void SortByKey(std::vector<std::shared_ptr<Segment>>* segments) {
  std::sort(segments->begin(), segments->end(),
            [](const std::shared_ptr<Segment>& a, const std::shared_ptr<Segment>& b) {
              return a->info().smallest < b->info().smallest;
            });
}

// In the run that loses `numbers`; it stays, and its level, as long as something is in it.
void ReplaceInPlace(const std::vector<uint64_t>& numbers,
                    const std::vector<std::shared_ptr<Segment>>& replacement,
                    std::vector<Level>* levels) {
  for (Level& level : *levels) {
    for (Run& run : level.runs) {
      const size_t erased =
          std::erase_if(run.segments, [&numbers](const std::shared_ptr<Segment>& segment) {
            return std::binary_search(numbers.begin(), numbers.end(), segment->info().number);
          });
      if (erased == 0) continue;
      run.segments.insert(run.segments.end(), replacement.begin(), replacement.end());
      SortByKey(&run.segments);
    }
    std::erase_if(level.runs, [](const Run& run) { return run.segments.empty(); });
  }
  RemoveEmptyLastLevels(levels);
}

void Join(const std::vector<std::shared_ptr<Segment>>& segments, Level* level) {
  if (level->runs.empty()) level->runs.emplace_back();
  std::vector<std::shared_ptr<Segment>>& run = level->runs.front().segments;
  run.insert(run.end(), segments.begin(), segments.end());
  SortByKey(&run);
}

}  // namespace

std::vector<Level> ApplyFlush(const Version& version,
                              const std::vector<std::shared_ptr<Segment>>& segments) {
  std::vector<Level> levels = version.levels();
  if (segments.empty()) return levels;
  if (levels.empty()) levels.emplace_back();
  levels[0].runs.insert(levels[0].runs.begin(), Run{segments});
  return levels;
}

std::vector<Level> ApplyCompaction(const Version& version, const CompactionPlan& plan,
                                   const std::vector<std::shared_ptr<Segment>>& segments) {
  std::vector<Level> levels = version.levels();
  std::vector<uint64_t> numbers;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments)
      numbers.push_back(segment->info().number);
  }
  std::sort(numbers.begin(), numbers.end());
  if (plan.in_place) {
    ReplaceInPlace(numbers, segments, &levels);
    return levels;
  }
  const size_t output = static_cast<size_t>(plan.output_level);
  if (plan.pushes_last_level_down)
    levels.insert(levels.begin() + static_cast<ptrdiff_t>(output), Level{});
  if (levels.size() <= output) levels.resize(output + 1);
  size_t place = 0;
  for (size_t i = 0; i < levels.size(); ++i) {
    const size_t in_level = RemoveSegments(numbers, &levels[i]);
    if (i == output) place = in_level;
  }
  if (!segments.empty()) {
    if (plan.joins_last_run) {
      Join(segments, &levels[output]);
    } else {
      std::vector<Run>& runs = levels[output].runs;
      runs.insert(runs.begin() + static_cast<ptrdiff_t>(place), Run{segments});
    }
  }
  RemoveEmptyLastLevels(&levels);
  return levels;
}

std::vector<std::vector<std::vector<SegmentInfo>>> ManifestLevels(
    const std::vector<Level>& levels) {
  std::vector<std::vector<std::vector<SegmentInfo>>> infos;
  for (const Level& level : levels) {
    std::vector<std::vector<SegmentInfo>>& runs = infos.emplace_back();
    for (const Run& run : level.runs) {
      std::vector<SegmentInfo>& segments = runs.emplace_back();
      for (const std::shared_ptr<Segment>& segment : run.segments)
        segments.push_back(segment->info());
    }
  }
  return infos;
}

}  // namespace varve
