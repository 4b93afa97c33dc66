// The prompt of client_main: it sends lines from a person to the server and shows the replies,
// until the end of the input or `quit`.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// The exit code.
int RunPrompt(const CommandLine& line);

}  // namespace varve
