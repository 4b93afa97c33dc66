// Records what concurrent clients see of a few keys while the server under them is killed and
// started again: every call with its times and its result, for a checker of linearizability
// (linearizability/check.go, which says how the lines read). A reader of the change feed has to see
// every write that was acknowledged exactly once, none that was refused, and all of them in an
// order that explains the replies (feed_order.h).
//
// Thread-safety: one thread calls the function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace varve::prove {

struct HistoryOptions {
  std::string server;     // the program
  std::string directory;  // exists, and is empty
  uint64_t seed = 1;
  int kills = 20;
  size_t clients = 8;
  size_t keys = 6;
};

// The lines, in the order of the calls of each client.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> RecordHistory(const HistoryOptions& options);

}  // namespace varve::prove
