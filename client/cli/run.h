// The run of client_main, from its command line to its exit code.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/bundle/bundle.h"
#include "client/console/command_line.h"

namespace varve {

// An offline command needs no server. The client knows nothing of the engine's files, so the
// program that links both passes the commands that read them.
struct OfflineCommand {
  std::string_view name;
  // Prints to standard output.
  absl::Status (*run)(const std::string& path, const CommandLine& line);
};

// `describe_store` is for `bundle`.
int RunClient(int argc, char** argv, absl::Span<const OfflineCommand> offline_commands,
              const DescribeStore& describe_store);

}  // namespace varve
