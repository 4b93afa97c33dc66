// A purge rewrites segments so that nothing of one user key is left in them: no version, no
// tombstone and no entry of the expiry index. The functions here find what has to be rewritten;
// db/engine/purger.h has the order of the steps.
//
// Segments are rewritten one by one, each in its place. The oldest comes first, so that at any time
// a newer tombstone hides what is left of the key.
//
// Thread-safety: plain values and functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

struct PurgedKey {
  std::string user_key;
  // The generations in which the key is purged, ascending. In dead generations merges drop it
  // anyway.
  std::vector<NamespaceGeneration> generations;
  SequenceNumber up_to = kNoSequence;  // what is newer stays

  // Returns whether a record of this tree key speaks of the key: in one of the generations, or in
  // the expiry index.
  bool Names(std::string_view tree_key) const;
};

// Returns the segments that hold something of the key, or a generation that `is_live` says is dead
// and that has the key, oldest first. They are inputs of one segment each.
[[nodiscard]] absl::StatusOr<std::vector<CompactionPlan::Input>> SegmentsToPurge(
    const Version& version, const PurgedKey& purged,
    const std::function<bool(NamespaceGeneration)>& is_live);
// Returns the plan that rewrites the one segment of the input in its place.
CompactionPlan PlanRewrite(CompactionPlan::Input input);

// Returns the numbers, ascending, of the version's value files whose bytes hold the user key behind
// a generation below `generations`, whether or not a segment still points there. The call reads the
// files, except for those in which nothing is garbage.
[[nodiscard]] absl::StatusOr<std::vector<uint64_t>> ValueFilesWithKey(
    FileSystem* file_system, const std::string& directory, const Version& version,
    std::string_view user_key, NamespaceGeneration generations);
// Returns the plan that rewrites a segment which points into one of the files `numbers`, and moves
// those of its values. Nothing: no segment does.
std::optional<CompactionPlan> PlanEmptying(const Version& version,
                                           const std::vector<uint64_t>& numbers);

}  // namespace varve
