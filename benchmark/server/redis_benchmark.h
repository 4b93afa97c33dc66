// Drives redis-benchmark, the well-known load generator, instead of our own. It costs as much as a
// server, checks no values, and reports no p99.9.
//
// Not thread-safe.
#pragma once

#include <optional>

#include "benchmark/process.h"
#include "benchmark/server/load.h"

namespace varve::bench {

// What came of a closed loop of about so many seconds; `p999` is 0. Nothing where it can't make
// such a load.
std::optional<LoadResult> DriveRedisBenchmark(const Load& load, const Child& server);

}  // namespace varve::bench
