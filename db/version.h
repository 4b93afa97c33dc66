// The set of live segments at one moment (the field's superversion, less the write buffers): what a read or merge looks at.
//
// Immutable once built: safe to share. A new Version is made for each flush and compaction and installed by the engine after the
// manifest that describes it is on disk.
//
// Shape (lazy leveling, after Dayan and Idreos, "Dostoevsky"): every level but the last holds up to `runs_per_level` sorted
// runs side by side, newest first; the last level is one run. Everything in a level is older than everything above it, and a
// run is older than the runs before it in its level, wherever their key ranges overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "db/range_tombstone.h"
#include "db/segment.h"

namespace varve {

// Segments with ascending, disjoint key ranges.
struct Run {
  std::vector<std::shared_ptr<Segment>> segments;

  uint64_t bytes() const;
  // Segment whose range could hold `tree_key`; null if none.
  const std::shared_ptr<Segment>* Find(std::string_view tree_key) const;
};

struct Level {
  std::vector<Run> runs;  // newest first
  uint64_t bytes() const;
};

class Version {
 public:
  Version() = default;
  explicit Version(std::vector<Level> levels);

  const std::vector<Level>& levels() const { return levels_; }
  // Of all segments together.
  const RangeTombstoneList& range_tombstones() const { return range_tombstones_; }
  // Runs from newest to oldest over all levels, for point reads.
  const std::vector<const Run*>& runs() const { return runs_; }
  uint64_t bytes() const;
  uint64_t segment_count() const;

 private:
  std::vector<Level> levels_;
  std::vector<const Run*> runs_;
  RangeTombstoneList range_tombstones_;
};

}  // namespace varve
