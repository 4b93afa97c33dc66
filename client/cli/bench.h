// The command `bench` runs SET and GET for a few seconds, for a quick look. Figures that are to be
// reported are measured with benchmark/ instead.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// Writes keys "bench:0" to "bench:<keyspace - 1>" and leaves them there. The exit code.
int RunBench(const CommandLine& line);

}  // namespace varve
