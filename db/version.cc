#include "db/version.h"

#include <algorithm>
#include <utility>

namespace varve {

uint64_t Run::bytes() const {
  uint64_t total = 0;
  for (const std::shared_ptr<Segment>& segment : segments) total += segment->info().file_size;
  return total;
}

size_t Run::IndexOf(std::string_view tree_key) const {
  const auto first = std::partition_point(
      segments.begin(), segments.end(),
      [tree_key](const std::shared_ptr<Segment>& segment) { return !ReachesTo(segment->info(), tree_key); });
  return static_cast<size_t>(first - segments.begin());
}

const std::shared_ptr<Segment>* Run::Find(std::string_view tree_key) const {
  const size_t index = IndexOf(tree_key);
  if (index == segments.size() || tree_key < segments[index]->info().smallest) return nullptr;
  return &segments[index];
}

uint64_t Level::bytes() const {
  uint64_t total = 0;
  for (const Run& run : runs) total += run.bytes();
  return total;
}

Version::Version(std::vector<Level> levels, const Version* previous) : levels_(std::move(levels)) {
  for (const Level& level : levels_) {
    for (const Run& run : level.runs) {
      runs_.push_back(&run);
      bytes_ += run.bytes();
      segment_count_ += run.segments.size();
      for (const std::shared_ptr<Segment>& segment : run.segments) {
        if (!segment->range_tombstones()->empty()) range_tombstone_segments_.push_back(segment->info().number);
      }
    }
  }
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

}  // namespace varve
