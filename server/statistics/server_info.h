// The text that INFO answers.
#pragma once

#include <string>

#include "server/clients/request_batch.h"
#include "server/server_state.h"

namespace varve {

// The sections named (case-insensitive; "all", "default" and "everything" name each), or all of
// them when none is named. The keys are those of `store`. `*durable_after`: the text must not be
// let out before it is durable.
std::string ServerInfo(ServerState& server, StoreContents& store, Arguments sections,
                       SequenceNumber* durable_after);

}  // namespace varve
