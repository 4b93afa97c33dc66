// Reads a secret from the first line of a file, so that it stands neither on a command line nor in
// the configuration.
//
// Thread-safety: All threads may call the function.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace varve {

// InvalidArgument: the file can't be read, its first line is empty, or it has a zero byte. The
// message names the file.
[[nodiscard]] absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace varve
