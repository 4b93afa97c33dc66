// The health of the server: the checks behind /readyz, whether the process works at all (/livez),
// and what limits the server now.
//
// Thread-safety: all threads may call the functions. They take no lock that is held across I/O.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/execution/server_state.h"
#include "server/statistics/load_sampler.h"
#include "varve/store_observation.h"

namespace varve {

struct HealthCheck {
  std::string_view name;
  std::string problem;  // empty: none
};

// Returns the checks: recovered, log_writable, disk_space, io_loops, no_damage, following,
// accepting.
std::vector<HealthCheck> HealthChecks(const ServerState& server, const StoreObservation& seen);

// Returns the checks as they are while the store is being opened: `recovered` fails.
std::vector<HealthCheck> ChecksWhileOpening();

// Returns what is wrong if an I/O loop has worked for 10 s without coming round or waiting for the
// disk; else an empty text.
std::string LivenessProblem(const ServerState& server);

// Notes the server's load and returns it together with what it was before.
Load LookAtLoad(ServerState& server, const StoreObservation& seen);

}  // namespace varve
