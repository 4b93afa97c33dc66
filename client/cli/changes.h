// The command `changes` prints the commits of the server in order, and goes on with --follow as
// they come.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// Returns the exit code.
int RunChanges(const CommandLine& line);

}  // namespace varve
