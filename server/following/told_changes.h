// The clients of a follower hear of the changes that come from its primary: caches (CLIENT
// TRACKING) and those who listen to changes of keys are told as on the primary.
//
// Thread-safety: a stateless function.
#pragma once

#include <string_view>

#include "server/execution/server_state.h"

namespace varve {

// Tells of the changes in `blocks`, which the store has committed. Costs two loads where nobody
// listens.
void TellOfReplicated(ServerState& server, std::string_view blocks);

}  // namespace varve
