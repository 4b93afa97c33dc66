// How far the opening of a store has come in replaying its log, for programs that tell people.
// Plain values.
#pragma once

#include <cstdint>
#include <functional>

namespace varve {

struct ReplayProgress {
  uint64_t bytes_read = 0;
  // The files that are replayed, with the room that they have left.
  uint64_t bytes_total = 0;
};

// The thread that opens the store calls it before the first byte, each few MiB, and at the end.
using ReplayListener = std::function<void(const ReplayProgress& progress)>;

}  // namespace varve
