// Version edits are functions from the levels of one Version to the levels of the next one. A job
// may be applied to a newer Version than the one it began with, because flushes have added runs to
// level 0 meanwhile, so the functions recognize a job's inputs by the numbers of their segments.
//
// Thread-safety: stateless functions.
#pragma once

#include <memory>
#include <vector>

#include "db/segment/segment.h"
#include "db/segment/segment_builder.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"

namespace varve {

// Makes the segments of a flush the newest run of level 0. Without segments nothing changes.
std::vector<Level> ApplyFlush(const Version& version,
                              const std::vector<std::shared_ptr<Segment>>& segments);

// Replaces the inputs of `plan` by `segments`, the output of the merge. Drops an empty last level
// once the level above it can be the last one, that is, it has one run at most or is level 0.
// Levels between the first and the last may be empty.
std::vector<Level> ApplyCompaction(const Version& version, const CompactionPlan& plan,
                                   const std::vector<std::shared_ptr<Segment>>& segments);

// Returns the levels in the form of Manifest::levels.
std::vector<std::vector<std::vector<SegmentInfo>>> ManifestLevels(const std::vector<Level>& levels);

}  // namespace varve
