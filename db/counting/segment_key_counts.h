// The segment key counts say by how much the segments of a tree change the number of keys, so that
// the keys can be counted without reading the tree.
//
// The number of keys in a tree is the sum of the changes of its segments. The change of a segment
// is the number of keys that are live with the segment and everything older, less the number that
// are live with everything older alone. If nothing older overlaps the segment, its change is the
// number of live keys in it, which its merge counted on the way (SegmentInfo::live); this does not
// hold for segments of clones, whose parents do not lie below them (db/format/namespace_forks.h),
// nor for segments of a store so old that its merges did not count keys that expire.
// Every other segment is uncounted until the key counter looks up what its records replaced, or
// until a merge takes them to where nothing is older. The counted ones are kept here in groups:
//
//   group: some segments and their change together. A segment is in one group at most, and always
//   counts with the whole group: the outputs of one merge share the change of its inputs.
//
// The change of a segment stays the same when layers above or below it are merged, as merges don't
// change what a reader of the present sees. There are two exceptions, after which the segments
// above are uncounted again: a CompactionFilter drops a record, or segments that are hidden as a
// whole are removed.
//
// Thread-safety: a plain value. Copies are cheap, as only upper levels have groups.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "db/format/key_counts.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"

namespace varve {

class SegmentKeyCounts {
 public:
  SegmentKeyCounts() = default;
  explicit SegmentKeyCounts(std::vector<CountedGroup> groups) : groups_(std::move(groups)) {}

  const std::vector<CountedGroup>& groups() const { return groups_; }

  struct UncountedSegment {
    size_t run;  // index in Version::runs()
    std::shared_ptr<Segment> segment;
  };
  struct Sum {
    GenerationKeyCounts counted;
    std::vector<UncountedSegment> uncounted;  // newest first
  };
  // Returns the sum of the counted segments of the tree, and the uncounted segments.
  Sum Add(const Version& version) const;

  // Returns how many runs, newest first, hold all segments whose change is not their own number of
  // live keys.
  size_t UncountedRuns(const Version& version) const;

  // Adds a group, unless `version` doesn't hold all of its segments any more. Forgets groups that
  // share some of them.
  void Record(const Version& version, CountedGroup group);
  // Follows a merge from `version`, which holds the inputs of `plan` and all segments of the
  // groups. `filtered` says that a filter dropped records.
  void Follow(const Version& version, const CompactionPlan& plan,
              const std::vector<std::shared_ptr<Segment>>& outputs, bool filtered);
  // Forgets groups that `version` doesn't hold completely, and groups of segments whose change is
  // their own number of live keys.
  void Tidy(const Version& version);

 private:
  std::vector<CountedGroup> groups_;
};

// Returns the numbers of the segments, ascending.
std::vector<uint64_t> NumbersOf(const std::vector<std::shared_ptr<Segment>>& segments);

}  // namespace varve
