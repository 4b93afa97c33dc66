// The commands of client_main that send one request to a server: put, get, delete, range, prefix,
// count, tree, ping and call.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// Runs line.words over a connection of its own and prints the result; the exit code.
int RunOneShot(const CommandLine& line);

}  // namespace varve
