// Chooses what to merge next. A user of the library may replace it; LazyLevelingPicker is the
// default.
//
// Stateless and thread-safe. The default's rules, and what they cost, stand in docs/compaction.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "db/version/version.h"
#include "type/tree_key.h"
#include "varve/options.h"

namespace varve {

struct CompactionPlan {
  // What goes in, newest first. Whole runs of a level, or for the last level the segments of its
  // run that overlap. For a range, segments of any run, as long as every older segment that
  // overlaps one of them, down to the output, is among them too.
  struct Input {
    int level = 0;
    std::vector<std::shared_ptr<Segment>> segments;  // of one run, ascending
  };
  std::vector<Input> inputs;
  int output_level = 0;
  // The output joins the run of the last level (its untouched segments stay), which may be about to
  // come into being; otherwise it becomes the newest run of output_level.
  bool joins_last_run = false;
  // The input runs are disjoint: they are moved as they are, nothing is written.
  bool move_only = false;
  // Nobody can see anything of the inputs: they are removed as they are, nothing is read or
  // written.
  bool remove_only = false;
  // Nothing older than the inputs overlaps them: tombstones may go.
  bool drops_tombstones = false;
  // Values that lie in these files, ascending, are written into a new one: collection
  // (db/compaction/value_collection.h).
  std::vector<uint64_t> emptied_files;
  // The output takes the place of the one input segment in its run.
  bool in_place = false;
  // A new last level is opened below: the old last level moves one down first.
  bool pushes_last_level_down = false;
};

class CompactionPicker {
 public:
  virtual ~CompactionPicker() = default;
  // Null: nothing to do. Called with the version's only writer excluded; no other compaction is
  // running. `in_burst`: a buffer is being flushed, or was within the last second; what can wait
  // until none was should, and this is called again then.
  virtual std::optional<CompactionPlan> Pick(const Version& version, const EngineOptions& options,
                                             bool in_burst) const = 0;
  // How far the tree is behind its shape: 0 up to as many runs in the upper levels as a burst
  // gathers, growing with each further one; 1 means that there are several times as many as there
  // should be. Slows writers down.
  virtual double Debt(const Version& version, const EngineOptions& options) const = 0;
};

std::shared_ptr<const CompactionPicker> LazyLevelingPicker();

// What can be merged where a run can't be read, so that runs don't pile up until it is repaired:
// neighbouring runs of the upper levels with no damaged one (Segment::is_damaged) among them, as
// soon as `runs_per_level` of them lie together. A run that is merged at least doubles by it, so
// that a record is written log2(n) times, and of n such runs about log2 stay. Null: nothing to do.
std::optional<CompactionPlan> PlanAroundDamage(const Version& version,
                                               const EngineOptions& options);
// Whether a merge would fail for damage that is known.
bool ReadsDamage(const CompactionPlan& plan);

// Merges everything that overlaps [lower, upper) (tree keys; an empty `upper` means no end) down
// into the last run, and with it whatever older segments lie in the way. Null: nothing overlaps.
std::optional<CompactionPlan> PlanRange(const Version& version, std::string_view lower,
                                        std::string_view upper);

// Segments of which nobody can see anything any more: all of their generations are dead (`is_live`
// null: none are), or a newer range tombstone hides all of it from the present and from each of the
// `snapshots` (ascending). The plan only removes them, without reading. Null: there are none.
std::optional<CompactionPlan> PlanDeadSegments(
    const Version& version, const std::vector<SequenceNumber>& snapshots,
    const std::function<bool(NamespaceGeneration)>& is_live);

}  // namespace varve
