// Merge parts are the key ranges into which a large merge is cut, so that several threads merge at
// once. Each part merges what the inputs hold of its range, as a merge of its own would, and writes
// segments of its own; one after the other, the outputs of the parts are the output of the merge,
// which is installed as one.
//
// The cuts are keys, so all versions of a key are in one part. A range tombstone that reaches
// across a cut is cut there, as at the end of a segment.
//
// Thread-safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "db/format/range_tombstone.h"
#include "db/version/compaction_plan.h"

namespace varve {

// The tree keys of [lower, upper). An empty `lower` or `upper` means no bound.
struct MergePart {
  std::string lower;
  std::string upper;
};

// Returns the keys, ascending, at which the merge of the plan is to be cut into `most` parts at
// most, of about as many bytes each and of `smallest` bytes at least; none if the merge is too
// small, writes nothing, or replaces a segment in its place. Keys have a generation's size at
// least. The call may read the fences of the inputs.
std::vector<std::string> MergeCuts(const CompactionPlan& plan, size_t most, uint64_t smallest);

// Returns the parts between the cuts, ascending; one part without bounds if there are none.
std::vector<MergePart> PartsBetween(absl::Span<const std::string> cuts);

// Returns what lies of the tombstones in the part.
std::vector<RangeTombstone> ClipTo(const MergePart& part, std::vector<RangeTombstone> tombstones);

// Returns the segments that reach into the part.
std::vector<std::shared_ptr<Segment>> SegmentsWithin(
    const MergePart& part, const std::vector<std::shared_ptr<Segment>>& segments);

}  // namespace varve
