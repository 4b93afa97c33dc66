// The command `export FILE [MIN MAX]` writes the keys and values of one snapshot to a file in
// bounded memory, and can go on after an interruption.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// The exit code.
int RunExport(const CommandLine& line);

}  // namespace varve
