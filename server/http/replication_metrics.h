// The metrics of replication: Varve's own, and those of Redis' exporter under its names.
//
// Thread-safety: any thread may call the functions.
#pragma once

#include "server/execution/server_state.h"
#include "server/http/metrics_text.h"

namespace varve {

void WriteVarveReplication(const ServerState& server, MetricsText* text);
void WriteRedisReplication(const ServerState& server, MetricsText* text);

}  // namespace varve
