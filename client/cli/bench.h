// `bench`: SET and GET for a few seconds, to have a quick look. What is to be reported is measured
// with benchmark/ instead.
#pragma once

#include "client/console/command_line.h"

namespace varve {

// Writes keys "bench:0" to "bench:<keyspace - 1>" and leaves them there. The exit code.
int RunBench(const CommandLine& line);

}  // namespace varve
