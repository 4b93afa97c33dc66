// Chooses what to merge next. A user of the library may replace it; LazyLevelingPicker is the default.
//
// Stateless and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/version.h"
#include "type/options.h"

namespace varve {

struct CompactionPlan {
  // What goes in, newest first. Whole runs of a level, or for the last level the segments of its run that overlap.
  struct Input {
    int level = 0;
    std::vector<std::shared_ptr<Segment>> segments;  // of one run, ascending
  };
  std::vector<Input> inputs;
  int output_level = 0;
  // The output joins the run that the last level already has (its untouched segments stay); otherwise it becomes the newest run of output_level.
  bool joins_last_run = false;
  // The input runs are disjoint: they are moved as they are, nothing is written.
  bool move_only = false;
  // Nothing older than the inputs overlaps them: tombstones may go.
  bool drops_tombstones = false;
  // A new last level is opened below: the old last level moves one down first.
  bool pushes_last_level_down = false;
};

class CompactionPicker {
 public:
  virtual ~CompactionPicker() = default;
  // Null: nothing to do. Called with the version's only writer excluded; no other compaction is running.
  virtual std::optional<CompactionPlan> Pick(const Version& version, const EngineOptions& options) const = 0;
  // How far the tree is behind its shape: 0 in shape, growing with each run too many in the upper levels. Slows writers down.
  virtual double Debt(const Version& version, const EngineOptions& options) const = 0;
};

std::shared_ptr<const CompactionPicker> LazyLevelingPicker();

}  // namespace varve
