// A version is the set of live segments at one moment, which reads and merges work on. The version
// set makes a new Version for each flush and merge and installs it once the manifest that describes
// it is on disk.
//
// Shape (lazy leveling, after Dayan and Idreos, "Dostoevsky"): every level but the last holds up to
// `runs_per_level` sorted runs side by side, newest first; the last level is one run. Everything in
// a level is older than everything above it, and a run is older than the runs before it in its
// level, wherever their key ranges overlap. A tree with one level has no last level yet: its runs
// are all side by side.
//
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "db/format/range_tombstone.h"
#include "db/segment/segment.h"
#include "varve/compaction_picker.h"

namespace varve {

// Returns whether two segments may hold the same key.
inline bool Overlap(const SegmentInfo& a, const SegmentInfo& b) {
  return ReachesTo(a, b.smallest) && ReachesTo(b, a.smallest);
}

// A run is a list of segments with ascending, disjoint key ranges.
struct Run {
  std::vector<std::shared_ptr<Segment>> segments;

  uint64_t bytes() const;  // of files
  uint64_t referenced_bytes() const;
  // Returns the segment whose range could hold `tree_key`; null if there is none.
  Segment* Find(std::string_view tree_key) const;
  // Returns the index of the first segment that may hold keys at or behind `tree_key`;
  // segments.size() if none does.
  size_t IndexOf(std::string_view tree_key) const;
};

struct Level {
  std::vector<Run> runs;  // newest first
  uint64_t bytes() const;
};

class Version {
 public:
  Version() = default;
  // If `previous` is not null, the version shares its range tombstones when the segments that hold
  // range tombstones are the same.
  explicit Version(std::vector<Level> levels, const Version* previous = nullptr);
  Version(const Version&) = delete;
  Version& operator=(const Version&) = delete;

  const std::vector<Level>& levels() const { return levels_; }
  // The range tombstones of all segments together.
  const RangeTombstoneList& range_tombstones() const { return *range_tombstones_; }
  // Runs from newest to oldest over all levels, for point reads.
  const std::vector<const Run*>& runs() const { return runs_; }
  // The levels as a compaction picker sees them. Its views point into the segments.
  const TreeShape& shape() const { return shape_; }
  uint64_t bytes() const { return bytes_; }
  // Returns how many bytes of value files its segments refer to.
  uint64_t referenced_bytes() const { return referenced_bytes_; }
  uint64_t segment_count() const { return segment_count_; }

  // The files that its segments point into, ascending by number, and how many bytes of each they
  // refer to.
  struct ValueFileUse {
    std::shared_ptr<ValueFile> file;
    uint64_t live_bytes = 0;
  };
  const std::vector<ValueFileUse>& value_files() const { return value_files_; }
  // Returns null if no segment points into the file.
  ValueFile* FindValueFile(uint64_t number) const;

 private:
  std::vector<Level> levels_;
  TreeShape shape_;
  std::vector<const Run*> runs_;
  std::vector<uint64_t> range_tombstone_segments_;  // numbers, ascending
  std::shared_ptr<const RangeTombstoneList> range_tombstones_ =
      std::make_shared<RangeTombstoneList>();
  uint64_t bytes_ = 0;
  uint64_t referenced_bytes_ = 0;
  uint64_t segment_count_ = 0;
  std::vector<ValueFileUse> value_files_;
};

}  // namespace varve
