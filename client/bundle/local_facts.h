// Gathers what a bundle tells of the machine, where the server runs on the machine of the client:
// the kernel, memory, load, limits of the process, and the disk of the data.
//
// Thread-safety: All threads may call the functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace varve {

// Returns the directory of the data as an absolute path, if process `id` of this machine runs
// `executable` and may be looked at. Unavailable says why it can't be told.
[[nodiscard]] absl::StatusOr<std::string> LocalDataDirectory(std::string_view id,
                                                             std::string_view executable,
                                                             const std::string& directory);

// Returns one text of facts, with a heading for each. Nothing of the process's environment and
// command line is among them.
std::string MachineFacts(std::string_view id, const std::string& directory);

}  // namespace varve
