// The status document says in one tree what the server is, whether it is healthy, what limits it,
// and its main figures. /status.json and the command STATUS show it.
//
// Thread-safety: all threads may call the function. It takes no lock that is held across I/O.
#pragma once

#include "server/execution/server_state.h"
#include "server/status/status_value.h"
#include "varve/store_observation.h"
#include "varve/store_survey.h"

namespace varve {

// Namespaces that the document and the metrics show by themselves; the others are one, "_other".
inline constexpr size_t kMostShownNamespaces = 100;

StatusValue StatusDocument(ServerState& server);

// Returns the figure of that name; 0 if there is none.
uint64_t FigureOf(const StoreObservation& seen, std::string_view name);

// Returns the positions in the store's log; zeros if the store cannot be surveyed.
StorePositions PositionsOf(const ServerState& server);

// Returns the estimates of the first namespaces, and of the others together.
std::vector<NamespaceEstimate> ShownNamespaces(const StoreObservation& seen);

}  // namespace varve
