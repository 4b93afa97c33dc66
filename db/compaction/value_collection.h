// Chooses what to rewrite so that overwritten values give their space back (the field's value log
// garbage collection).
//
// What of a value file no segment points to is garbage. When it is more than a fifth of all bytes
// in value files, the emptiest files are emptied: one segment after the other that points into them
// is written anew, with those of its values in a new file. Only keys and places of a segment are
// rewritten with that, and each step is a merge of one segment. Nothing is kept between the steps:
// a file that was begun with is emptier than before, and so is chosen again. Files in which damage
// was met are left alone.
//
// Thread-safe: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/compaction/compaction_planner.h"
#include "db/version/version.h"

namespace varve {

// At the start: tells the files of the log from the others by their names, and of those that are
// missing.
[[nodiscard]] absl::Status FindValueFiles(FileSystem* file_system, const std::string& directory,
                                          const Version& version);

struct ValueSpace {
  uint64_t files = 0;
  uint64_t bytes = 0;    // of them
  uint64_t garbage = 0;  // of these
};
// Of the files that the log has given up.
ValueSpace ValueSpaceOf(const Version& version);

// So much garbage that collecting comes before merging.
bool IsUrgent(const ValueSpace& space);
// Null: there is too little garbage.
std::optional<CompactionPlan> PlanCollection(const Version& version);

}  // namespace varve
