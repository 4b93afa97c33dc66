#include "db/version/version.h"

#include <algorithm>
#include <map>
#include <utility>

namespace varve {

uint64_t Run::bytes() const {
  uint64_t total = 0;
  for (const std::shared_ptr<Segment>& segment : segments) total += segment->info().file_size;
  return total;
}

uint64_t Run::referenced_bytes() const {
  uint64_t total = 0;
  for (const std::shared_ptr<Segment>& segment : segments)
    total += segment->info().referenced_bytes();
  return total;
}

size_t Run::IndexOf(std::string_view tree_key) const {
  const auto first = std::partition_point(segments.begin(), segments.end(),
                                          [tree_key](const std::shared_ptr<Segment>& segment) {
                                            return !ReachesTo(segment->info(), tree_key);
                                          });
  return static_cast<size_t>(first - segments.begin());
}

Segment* Run::Find(std::string_view tree_key) const {
  const size_t index = IndexOf(tree_key);
  if (index == segments.size() || tree_key < segments[index]->info().smallest) return nullptr;
  return segments[index].get();
}

uint64_t Level::bytes() const {
  uint64_t total = 0;
  for (const Run& run : runs) total += run.bytes();
  return total;
}

namespace {

SegmentShape ShapeOf(const SegmentInfo& info) {
  return {.number = info.number,
          .file_size = info.file_size,
          .referenced_bytes = info.referenced_bytes(),
          .tombstones = info.tombstones,
          .range_tombstones = info.range_tombstones,
          .smallest = info.smallest,
          .largest = info.largest,
          .largest_is_exclusive = info.largest_is_exclusive,
          .smallest_sequence = info.smallest_sequence,
          .largest_sequence = info.largest_sequence,
          .is_ingested = info.ingested_at != kNoSequence};
}

TreeShape ShapeOf(const std::vector<Level>& levels) {
  TreeShape shape;
  for (const Level& level : levels) {
    LevelShape& in_level = shape.levels.emplace_back();
    for (const Run& run : level.runs) {
      RunShape& in_run = in_level.runs.emplace_back();
      in_run.segments.reserve(run.segments.size());
      for (const std::shared_ptr<Segment>& segment : run.segments)
        in_run.segments.push_back(ShapeOf(segment->info()));
    }
  }
  return shape;
}

}  // namespace

Version::Version(std::vector<Level> levels, const Version* previous)
    : levels_(std::move(levels)), shape_(ShapeOf(levels_)) {
  for (const Level& level : levels_) {
    for (const Run& run : level.runs) {
      runs_.push_back(&run);
      bytes_ += run.bytes();
      referenced_bytes_ += run.referenced_bytes();
      segment_count_ += run.segments.size();
      for (const std::shared_ptr<Segment>& segment : run.segments) {
        if (!segment->range_tombstones()->empty())
          range_tombstone_segments_.push_back(segment->info().number);
      }
    }
  }
  std::map<uint64_t, ValueFileUse> uses;
  for (const Run* run : runs_) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      for (size_t i = 0; i < segment->value_files().size(); ++i) {
        const ValueReference& reference = segment->info().value_files[i];
        ValueFileUse& use = uses[reference.file_number];
        use.file = segment->value_files()[i];
        use.live_bytes += reference.bytes;
      }
    }
  }
  value_files_.reserve(uses.size());
  for (auto& [number, use] : uses) value_files_.push_back(std::move(use));

  // Segments never change, so the numbers say it all.
  std::sort(range_tombstone_segments_.begin(), range_tombstone_segments_.end());
  if (previous != nullptr && previous->range_tombstone_segments_ == range_tombstone_segments_) {
    range_tombstones_ = previous->range_tombstones_;
    return;
  }
  std::vector<RangeTombstone> all;
  for (const Run* run : runs_) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      const std::vector<RangeTombstone>& tombstones = segment->range_tombstones()->tombstones();
      all.insert(all.end(), tombstones.begin(), tombstones.end());
    }
  }
  range_tombstones_ = std::make_shared<RangeTombstoneList>(std::move(all));
}

ValueFile* Version::FindValueFile(uint64_t number) const {
  const auto use = std::lower_bound(
      value_files_.begin(), value_files_.end(), number,
      [](const ValueFileUse& each, uint64_t wanted) { return each.file->number() < wanted; });
  return use != value_files_.end() && use->file->number() == number ? use->file.get() : nullptr;
}

}  // namespace varve
