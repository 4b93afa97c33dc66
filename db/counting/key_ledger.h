// How many keys a tree holds, layer by layer, without having read it.
//
// The keys of a tree are the sum of what each segment changes: the keys that are live with it and
// everything older in place, less those that were live without it. Where nothing older overlaps a
// segment, that is the number of live keys in it, which its merge counted on the way
// (SegmentInfo::live), but for clones, which stand on what is not below them
// (db/format/namespace_bases.h). For the others it is unsettled until somebody looks up what their
// records replaced, or a merge takes them to where nothing is older. What was settled is kept here:
//
//   group: some segments and what they change together. A segment is in one group at most, and
//   always counts with the whole group: segments of one merge share what its inputs changed.
//
// What a segment changes stays true whatever is merged above or below it, as merges don't change
// what a reader of the present sees. There are two exceptions, after which what lies above is
// unsettled again: a CompactionFilter that drops a record, and the removal of segments that are
// hidden as a whole.
//
// A plain value; copies are cheap, as only upper levels have groups.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "db/format/key_tally.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"

namespace varve {

class KeyLedger {
 public:
  KeyLedger() = default;
  explicit KeyLedger(std::vector<SettledGroup> groups) : groups_(std::move(groups)) {}

  const std::vector<SettledGroup>& groups() const { return groups_; }

  struct UnsettledSegment {
    size_t run;  // index in Version::runs()
    std::shared_ptr<Segment> segment;
  };
  struct Sum {
    KeyTallies settled;
    std::vector<UnsettledSegment> unsettled;  // newest first
  };
  // Returns the sum of what is known of the tree.
  Sum Add(const Version& version) const;

  // How many runs, newest first, hold all segments that don't tell by themselves what they change.
  size_t UncountedRuns(const Version& version) const;

  // Notes what the segments of a group change, unless `version` doesn't hold them all any more.
  // Groups that shared some of them are forgotten.
  void Settle(const Version& version, SettledGroup group);
  // Follows a merge: `version` is one that the plan fits, with all segments of the groups.
  // `filtered`: a filter dropped records.
  void Follow(const Version& version, const CompactionPlan& plan,
              const std::vector<std::shared_ptr<Segment>>& outputs, bool filtered);
  // Forgets groups that `version` doesn't hold completely, and those that its segments tell anyway.
  void Tidy(const Version& version);

 private:
  std::vector<SettledGroup> groups_;
};

// The numbers of segments, ascending.
std::vector<uint64_t> NumbersOf(const std::vector<std::shared_ptr<Segment>>& segments);

}  // namespace varve
