// A compaction plan describes a merge that the engine is about to make: which segments of a Version
// are its inputs, and where its output goes. The engine makes a plan from a picker's choice
// (include/varve/compaction_picker.h) or for a purpose of its own.
//
// Thread-safety: plain values, which keep their segments open.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "db/segment/segment.h"
#include "varve/compaction_picker.h"

namespace varve {

struct CompactionPlan {
  struct Input {
    int level = 0;
    std::vector<std::shared_ptr<Segment>> segments;  // of one run, ascending
  };
  // The inputs, newest first. An input is a whole run; in the last level it is the segments of the
  // run that overlap the other inputs. A merge of a range may take some segments of any run, if it
  // also takes every older segment, down to the output level, that overlaps one of them.
  std::vector<Input> inputs;
  CompactionReason reason = CompactionReason::kPicker;  // why the merge is made
  int output_level = 0;
  // The output becomes part of the one run of the last level, beside the segments of it that are no
  // inputs. If false, the output becomes the newest run of output_level.
  bool joins_last_run = false;
  // The input runs are disjoint. The merge moves their segments as they are and writes nothing.
  bool move_only = false;
  // No reader can see anything of the inputs. The merge removes them and reads and writes nothing.
  bool remove_only = false;
  // No segment older than the inputs overlaps them, so the merge may drop tombstones.
  bool drops_tombstones = false;
  // The numbers, ascending, of value files that this merge collects: it writes the values that the
  // inputs refer to there into a new value file (db/compaction/value_collection.h).
  std::vector<uint64_t> emptied_files;
  // The merge stores values that are kept apart as the compression policy says now
  // (db/compaction/value_recompression.h).
  bool recompresses_values = false;
  // There is one input segment, and the output replaces it in its run.
  bool in_place = false;
  // The last level moves one level down before the merge.
  bool pushes_last_level_down = false;
};

}  // namespace varve
