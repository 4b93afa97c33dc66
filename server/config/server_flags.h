// The settings that the server starts with: of its command line, the environment
// (server/config/environment.h) and the configuration file. Flags are written with dashes
// (`--write-buffer-size=64MiB`, or the value as the next argument); underscores mean the same. A
// flag takes precedence over the environment, and that over the file.
//
// Thread-safety: All threads may call the functions.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/settings.h"

namespace varve {

struct ServerCommandLine {
  bool help = false;
  bool version = false;
  bool check_config = false;
  bool example_config = false;
  std::string config_file;  // empty: none
  ServerConfig config;      // as it was given
  // With what was left to the server chosen by the memory at hand (server/config/memory_plan.h).
  ServerConfig fitted;
};

// Reads the command line, `environment` ("NAME=value", null at the end; null itself: none), the
// file and the password's file. InvalidArgument says which settings are
// wrong and what they take; those of the file a line each, with file and line.
[[nodiscard]] absl::StatusOr<ServerCommandLine> ParseServerCommandLine(
    int argc, char** argv, const char* const* environment = nullptr);

// Returns the text that --help prints.
std::string ServerHelp();

}  // namespace varve
