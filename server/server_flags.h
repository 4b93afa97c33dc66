// The command line of server_main. Names are written with dashes (`--write-buffer-size=64MiB`); underscores mean the same.
// Not thread-safe: called once, at start.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "type/options.h"
#include "type/server_options.h"

namespace varve {

struct ServerCommandLine {
  bool help = false;
  bool version = false;
  std::string directory;
  std::string log_level;
  std::string log_file;  // empty: standard error
  EngineOptions engine;
  ServerOptions server;
};

// Reads the command line. InvalidArgument says which setting is wrong and what it takes.
[[nodiscard]] absl::StatusOr<ServerCommandLine> ParseServerCommandLine(int argc, char** argv);

// What --help prints.
std::string ServerHelp();

// What CONFIG GET answers: the settings in force, under their own names and, where clients ask for it, under Redis' name.
std::vector<std::pair<std::string, std::string>> ServerSettings(const ServerCommandLine& command_line);

}  // namespace varve
