// A merge that the engine is about to make: which segments of a Version go in, and where the output
// goes. A picker's choice (include/varve/compaction_picker.h) becomes one, and so do the engine's
// own plans. Plain values, which keep their segments open.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "db/segment/segment.h"

namespace varve {

struct CompactionPlan {
  // The inputs come newest first. Each is whole runs of a level, or for the last level the segments
  // of its run that overlap. For a range, an input is segments of any run, as long as every older
  // segment that overlaps one of them, down to the output, is among the inputs, too.
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

}  // namespace varve
