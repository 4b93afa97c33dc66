// The tables of server_benchmark, from the figures of all rows that ran.
//
// Thread-safety: one thread at a time calls these functions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/report.h"
#include "benchmark/server/contenders.h"
#include "benchmark/server/server_rows.h"

namespace varve::bench {

// The reasons why rows could not be run, by row and contender.
using Reasons = std::map<std::pair<std::string, std::string>, std::string>;

struct ServerReport {
  std::string table;   // every row: each server's figure, the ratios, and the goals
  std::string beside;  // latencies, processor time and what else was counted
  // A short table for a front page: Varve and Redis alone, rates and latencies in milliseconds.
  std::string brief;
  // Goals that were missed; rows in which the client or the sockets were the limit.
  std::string notes;
  std::string history;  // all ratios to Redis, for history.md
};

// Returns the tables. A ratio above 1 is a lead, also if less is better.
ServerReport ReportServers(const std::vector<ServerRow>& rows, const Samples& samples,
                           const Reasons& reasons);

}  // namespace varve::bench
