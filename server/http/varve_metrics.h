// The metrics page: every figure that the server and its store keep, under names that begin with
// varve_ (docs/metrics.md lists them; they are stable).
//
// Thread-safety: all threads may call the functions. They take no lock that is held across I/O.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/execution/server_state.h"
#include "server/http/metrics_text.h"

namespace varve {

// Writes the metrics. `prefixes`: those of keys of database 0 whose bytes are shown.
void WriteVarveMetrics(ServerState& server, const std::vector<std::string>& prefixes,
                       MetricsText* text);

// Writes the metrics of those figures of a store (Store::Observe) that have one of their own.
void WriteStoreFigures(const std::vector<std::pair<std::string, uint64_t>>& figures,
                       MetricsText* text);

}  // namespace varve
