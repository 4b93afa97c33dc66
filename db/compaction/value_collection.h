// Value collection chooses what to rewrite so that overwritten values give their space back (the
// field's value log garbage collection).
//
// What no segment points to in a value file is garbage. When it is more than a fifth of all bytes
// in value files, the emptiest files are emptied: one segment after the other that points into them
// is written anew, with those of its values in a new file. That rewrites only the keys and handles
// of a segment, and each step is a merge of one segment. Nothing is kept between the steps: a file
// that was begun with is emptier than before, and so is chosen again. Files in which damage was met
// are left alone.
//
// Thread-safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/compaction/compaction_planner.h"
#include "db/version/version.h"

namespace varve {

// Tells the files of the log from the others by their names when a store is opened, and logs which
// are missing.
[[nodiscard]] absl::Status FindValueFiles(FileSystem* file_system, const std::string& directory,
                                          const Version& version);

struct ValueSpace {
  uint64_t files = 0;
  uint64_t bytes = 0;    // size of the files
  uint64_t garbage = 0;  // bytes among them that no segment points to
};
// Returns the space of the files that the log has given up.
ValueSpace ValueSpaceOf(const Version& version);
// Returns the same without a look at the disk: of the files whose sizes are known. The merge thread
// has asked for them soon after the store was opened.
ValueSpace KnownValueSpaceOf(const Version& version);

// Returns whether there is so much garbage that collecting comes before merging.
bool IsUrgent(const ValueSpace& space);
// Returns nothing if there is too little garbage.
std::optional<CompactionPlan> PlanCollection(const Version& version);

}  // namespace varve
