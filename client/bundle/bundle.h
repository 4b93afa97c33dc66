// The command `bundle`: one archive of what tells how a server fares, for people who look for the
// cause of trouble. It holds no key, no value, no password and no client's name, and takes less
// than five seconds whatever hangs. It asks the server only what the user may ask; what could not
// be had is named in its first file, MANIFEST.json.
//
// Thread-safety: All threads may call the function.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "client/console/command_line.h"

namespace varve {

// Returns a description of the files of the store in a directory, without keys.
using DescribeStore = std::function<absl::StatusOr<std::string>(const std::string& directory)>;

// Writes the archive that line.words[1] names and prints what it holds. Returns the exit code, or
// ends the process with it where the time is over before everything was gathered.
int RunBundle(const CommandLine& line, const DescribeStore& describe_store);

}  // namespace varve
