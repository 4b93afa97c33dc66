// The run of client_main, from its command line to its exit code.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/bundle/bundle.h"
#include "client/console/command_line.h"

namespace varve {

// A command that reads or writes files of the engine. The client knows nothing of these, so the
// program that links both passes the commands.
struct FileCommand {
  std::string_view name;
  std::string_view arguments;  // as --help names them: "DEST NEWDIR"
  size_t count = 1;            // how many of them
  // Prints to standard output. Requires: line.words has the name and `count` arguments.
  absl::Status (*run)(const CommandLine& line);
};

// `describe_store` is for `bundle`.
int RunClient(int argc, char** argv, absl::Span<const FileCommand> file_commands,
              const DescribeStore& describe_store);

}  // namespace varve
