// The metrics page for dashboards and alerts of Redis: the server's figures under the names and
// labels of redis_exporter, so that they work without one.
//
// Thread-safety: all threads may call the function. It takes no lock that is held across I/O.
#pragma once

#include "server/execution/server_state.h"
#include "server/http/metrics_text.h"

namespace varve {

void WriteRedisMetrics(ServerState& server, MetricsText* text);

}  // namespace varve
