// Starts a server on one directory again and again, has it written to, and ends it: mostly with
// kill -9 at a random moment, sometimes while it starts, sometimes with a polite SIGTERM under
// load. All three modes, all three ways of execution and various depths of pipelining take turns.
// After each end everything that was acknowledged, or shown to a reader, is there.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "unit-tests/prove/fleet.h"

namespace varve::prove {

struct CycleOptions {
  std::string server;     // the program
  std::string directory;  // exists, and is empty
  uint64_t cycles = 100;
  std::chrono::seconds at_most{0};  // ends earlier when this is over; 0: doesn't
  uint64_t seed = 1;
  size_t writers = 8;
};

// Ends with the first cycle in which something is wrong.
Figures RunKillCycles(const CycleOptions& options);

}  // namespace varve::prove
