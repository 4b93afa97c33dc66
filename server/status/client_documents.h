// The client documents say who is connected and which requests took long. They are for users who
// may execute CLIENT LIST and SLOWLOG GET.
//
// Thread-safety: all threads may call the functions. They take no lock that is held across I/O.
#pragma once

#include <cstddef>

#include "server/execution/server_state.h"
#include "server/status/status_value.h"

namespace varve {

// Clients that the document shows at most: those that hold most memory.
inline constexpr size_t kMostShownClients = 100;

StatusValue ClientsDocument(const ServerState& server);

// Returns all entries of the slow log, newest first.
StatusValue SlowLogDocument(const ServerState& server);

}  // namespace varve
