// The command `import FILE` sends the contents of a file to the server, pipelined and in bounded
// memory, and can go on after an interruption.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// The exit code: kFailed also when single records could not be imported; all others were.
int RunImport(const CommandLine& line);

}  // namespace varve
