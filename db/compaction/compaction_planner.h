// The plans that the engine makes itself, beside those of its picker: merges of a range, merges
// around damage, removal of what nobody can see; and the way from a picker's choice to a plan.
//
// Thread-safety: stateless functions.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "db/history/horizons.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"
#include "type/tree_key.h"
#include "varve/compaction_picker.h"

namespace varve {

// Returns the plan that `pick` describes. InvalidArgument: it names segments or levels that the
// version does not have.
absl::StatusOr<CompactionPlan> PlanOf(const Version& version, const CompactionPick& pick);

// Returns what can be merged while a run can't be read, so that runs don't pile up until it is
// repaired: neighbouring runs of the upper levels with no damaged one (Segment::is_damaged) among
// them, as soon as `runs_per_level` of them lie together. A run that is merged at least doubles by
// it, so that a record is written log2(n) times, and of n such runs about log2 stay. Nothing: there
// is nothing to do.
std::optional<CompactionPlan> PlanAroundDamage(const Version& version,
                                               const EngineOptions& options);
// Returns whether a merge would fail for damage that is known.
bool ReadsDamage(const CompactionPlan& plan);

// Merges everything that overlaps [lower, upper) (tree keys; an empty `upper` means no end) down
// into the last run, and with it whatever older segments lie in the way. Nothing: nothing overlaps.
std::optional<CompactionPlan> PlanRange(const Version& version, std::string_view lower,
                                        std::string_view upper);

// Removes, without reading them, the segments of which nobody can see anything any more: all of
// their generations are dead (`is_live` null: none are), or a newer range tombstone hides all of it
// from the present, from each of the `snapshots` (ascending) and from each version that `kept`
// names. Nothing: there are none.
std::optional<CompactionPlan> PlanDeadSegments(
    const Version& version, const std::vector<SequenceNumber>& snapshots, const KeptVersions& kept,
    const std::function<bool(NamespaceGeneration)>& is_live);

}  // namespace varve
