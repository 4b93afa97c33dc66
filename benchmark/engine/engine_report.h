// The tables of engine_benchmark, from the figures of all rows that ran.
//
// Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "benchmark/engine/engine_measurements.h"
#include "benchmark/report.h"

namespace varve::bench {

// Beside the engines in the samples: no engine, but what a plain write() of the same bytes does.
inline constexpr const char* kBareWrite = "bare_write";

struct EngineReport {
  std::string table;    // every row: each engine's figure, and the ratio to the best peer
  std::string beside;   // latencies, processor time and what else was counted
  std::string notes;    // the geometric mean, and the plain writes
  std::string history;  // all ratios, for history.md
};

// A ratio above 1 is a lead, also where less is better.
EngineReport Report(const std::vector<Row>& rows, const std::vector<Engine>& engines,
                    const Samples& samples);

}  // namespace varve::bench
