// The command `move TARGET_URL` brings what the server holds to another one while clients write on,
// and follows until it is stopped. What an operator should know goes to standard error.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// Returns the exit code.
int RunMove(const CommandLine& line);

}  // namespace varve
