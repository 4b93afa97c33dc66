// client_main without a command: lines from a person to the server, replies back, until the end of
// the input or `quit`.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// The exit code.
int RunPrompt(const CommandLine& line);

}  // namespace varve
