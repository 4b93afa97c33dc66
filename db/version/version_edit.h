// Version edits are pure functions from the levels of one Version to the levels of the next.
//
// Thread-safety: pure functions. A job works on an older Version than the one it is applied to:
// flushes may have added runs to level 0 meanwhile, so the functions recognize a job's inputs by
// the numbers of their segments.
#pragma once

#include <memory>
#include <vector>

#include "db/segment/segment.h"
#include "db/segment/segment_builder.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"

namespace varve {

// The segments of a flush become the newest run of level 0 (none: nothing changes).
std::vector<Level> ApplyFlush(const Version& version,
                              const std::vector<std::shared_ptr<Segment>>& segments);

// `segments`: the result of the compaction. An empty last level vanishes as soon as the one above
// it can take its place (that has one run at most, or is level 0); levels between the first and the
// last may be empty.
std::vector<Level> ApplyCompaction(const Version& version, const CompactionPlan& plan,
                                   const std::vector<std::shared_ptr<Segment>>& segments);

// As Manifest::levels has it.
std::vector<std::vector<std::vector<SegmentInfo>>> ManifestLevels(const std::vector<Level>& levels);

}  // namespace varve
