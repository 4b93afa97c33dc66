// The steps that bring a repair to its end, on disk before the first of them is taken
// (tools/repair.h draws the file). Stateless functions.
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
  // Name in the directory, name in its directory "damaged"; but for those of which
  // StaysForItsValues.
  std::vector<std::pair<std::string, std::string>> moves;
};

// A log file that becomes a value file: `target` is its name in the directory.
inline bool StaysForItsValues(std::string_view name, std::string_view target) {
  return name.ends_with(".log") && target.ends_with(".val");
}

// Gives `name` one that is free in DIR/damaged. `damaged`: the names there.
std::string NameInDamaged(const std::string& name, const std::vector<std::string>& damaged);

// On disk, as a whole, when it returns OK.
[[nodiscard]] absl::Status WriteRepairPlan(FileSystem* file_system, const std::string& directory,
                                           const RepairPlan& plan);
// NotFound: no repair was interrupted.
[[nodiscard]] absl::StatusOr<RepairPlan> ReadRepairPlan(FileSystem* file_system,
                                                        const std::string& directory);
// The first number of the segments that a rebuild makes, so that one that starts anew tells them
// from the store's: that of an earlier, interrupted one, else `number`, which is on disk then.
[[nodiscard]] absl::StatusOr<uint64_t> BeginRebuild(FileSystem* file_system,
                                                    const std::string& directory, uint64_t number);
// Does what is left to do, and forgets the plan.
[[nodiscard]] absl::Status CarryOut(FileSystem* file_system, const std::string& directory,
                                    const RepairPlan& plan);

}  // namespace varve
