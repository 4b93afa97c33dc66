// The tables of server_benchmark, from the figures of all rows that ran.
//
// Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/report.h"
#include "benchmark/server/contenders.h"
#include "benchmark/server/server_rows.h"

namespace varve::bench {

// Why a row could not be run on a contender.
using Reasons = std::map<std::pair<std::string, std::string>, std::string>;

struct ServerReport {
  std::string table;   // every row: each server's figure, the ratios, and the goals
  std::string beside;  // latencies, processor time and what else was counted
  // Varve and Redis alone, rates and latencies in milliseconds, as a front page has room for.
  std::string brief;
  // Goals that were missed; rows in which the client or the sockets were the limit.
  std::string notes;
  std::string history;  // all ratios to Redis, for history.md
};

// A ratio above 1 is a lead, also where less is better.
ServerReport ReportServers(const std::vector<ServerRow>& rows, const Samples& samples,
                           const Reasons& reasons);

}  // namespace varve::bench
