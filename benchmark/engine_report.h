// The tables of engine_benchmark, from the figures of all rows that ran.
//
// Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/engine_measurements.h"

namespace varve::bench {

// Figures by row and engine, one sample a repetition. An engine "bare_write" is no engine, but what a plain write() of
// the same bytes does.
using Samples = std::map<std::pair<std::string, std::string>, std::vector<Figures>>;
inline constexpr const char* kBareWrite = "bare_write";

struct EngineReport {
  std::string table;    // every row: each engine's figure, and the ratio to the best peer
  std::string beside;   // latencies, processor time and what else was counted
  std::string notes;    // the geometric mean, and the plain writes
  std::string history;  // all ratios, for history.md
};

// A ratio above 1 is a lead, also where less is better.
EngineReport Report(const std::vector<Row>& rows, const std::vector<Engine>& engines, const Samples& samples);

}  // namespace varve::bench
