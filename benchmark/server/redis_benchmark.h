// A driver of redis-benchmark, the well-known load generator, in place of our own. It costs as much
// as a server, checks no values, and reports no p99.9.
//
// Thread-safety: one thread at a time calls the function.
#pragma once

#include <optional>

#include "benchmark/process.h"
#include "benchmark/server/load.h"

namespace varve::bench {

// Runs a closed loop for about as long as the load says, and returns its result with a `p999` of 0.
// Returns nothing if redis-benchmark can't make such a load.
std::optional<LoadResult> DriveRedisBenchmark(const Load& load, const Child& server);

}  // namespace varve::bench
