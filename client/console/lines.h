// The run of client_main without a command when standard input is no terminal: each line of the
// input is a command, as in `echo 'GET a' | client_main`.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// The exit code: kErrorReply when a line was no command or its reply an error (the lines after it
// are executed), kFailed when the connection or the input failed.
int RunLines(const CommandLine& line);

}  // namespace varve
