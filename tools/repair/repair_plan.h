// The steps that bring a repair to its end, on disk before the first of them is taken
// (tools/repair/repair.h draws the file).
//
// Thread-safety: stateless functions. Requires: the caller holds the store's lock.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/version/manifest.h"
#include "util/os/file_system.h"

namespace varve {

struct RepairPlan {
  Manifest manifest;  // the one to come
  // Each move has a name in the directory and a name in its directory "damaged"; a file that
  // StaysForItsValues gets a new name in the directory itself.
  std::vector<std::pair<std::string, std::string>> moves;
};

// Returns whether a move makes a log file a value file: `target` is its name in the directory then.
inline bool StaysForItsValues(std::string_view name, std::string_view target) {
  return name.ends_with(".log") && target.ends_with(".val");
}

// Returns a name for `name` that is free in DIR/damaged. `damaged` are the names there.
std::string NameInDamaged(const std::string& name, const std::vector<std::string>& damaged);

// Writes the plan. It is on disk, as a whole, when this returns OK.
[[nodiscard]] absl::Status WriteRepairPlan(FileSystem* file_system, const std::string& directory,
                                           const RepairPlan& plan);
// Reads the plan. NotFound: no repair was interrupted.
[[nodiscard]] absl::StatusOr<RepairPlan> ReadRepairPlan(FileSystem* file_system,
                                                        const std::string& directory);
// Returns the first number of the segments that a rebuild makes, so that a rebuild that starts anew
// tells them from the store's: the number of an earlier, interrupted rebuild, else `number`, which
// is on disk then.
[[nodiscard]] absl::StatusOr<uint64_t> BeginRebuild(FileSystem* file_system,
                                                    const std::string& directory, uint64_t number);
// Does what is left to do, and forgets the plan.
[[nodiscard]] absl::Status CarryOut(FileSystem* file_system, const std::string& directory,
                                    const RepairPlan& plan);

}  // namespace varve
