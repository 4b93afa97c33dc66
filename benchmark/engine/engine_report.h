// The tables of engine_benchmark, from the figures of all rows that ran.
//
// Thread-safety: one thread at a time calls these functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/engine/engine_measurements.h"
#include "benchmark/report.h"

namespace varve::bench {

// The name in the samples for a plain write() of the same bytes, which is no engine.
inline constexpr const char* kBareWrite = "bare_write";

// Why a row was not measured with an engine, by row and engine.
using Reasons = std::map<std::pair<std::string, std::string>, std::string>;

struct EngineReport {
  std::string table;    // every row: each engine's figure, and the ratio to the best peer
  std::string beside;   // latencies, processor time and what else was counted
  std::string notes;    // the geometric mean, and the plain writes
  std::string history;  // all ratios, for history.md
};

// Returns the tables. A ratio above 1 is a lead, also if less is better.
EngineReport Report(const std::vector<Row>& rows, const std::vector<Engine>& engines,
                    const Samples& samples, const Reasons& reasons);

}  // namespace varve::bench
