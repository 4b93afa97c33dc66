// When two replies count as the same, and the differences between Varve and Redis 7.0 that are
// meant. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "unit-tests/differential/command_generator.h"

namespace varve::differential {

// A reply as it came, in bytes; where the order of its elements means nothing, they are sorted.
std::string Comparable(const CommandLine& line, const std::string& reply);

// A difference that is meant, told by the command alone.
struct Difference {
  const char* reason;
  // The servers may hold different data behind such a command, whatever they answered.
  bool changes_data;
  bool (*applies)(const CommandLine& line);
};

// Null: both servers have to answer the same.
const Difference* Explain(const CommandLine& line);
// The same for a command that EXEC executed, where the store may have no snapshots.
const Difference* ExplainInTransaction(const CommandLine& line);

}  // namespace varve::differential
