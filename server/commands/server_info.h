// The text that INFO answers.
#pragma once

#include <string>

#include "server/execution/server_state.h"
#include "server/requests/request_batch.h"

namespace varve {

// The protocol level that clients may count on.
inline constexpr const char* kRedisVersion = "7.0.0";

// Returns the text of the sections that are named, in upper or lower case; "all", "default" and
// "everything" name several. No name at all names the default sections. The figures of keys are
// those of `store`. Sets `*durable_after` to the sequence that must be durable before the text may
// leave.
std::string ServerInfo(ServerState& server, StoreContents& store, Arguments sections,
                       SequenceNumber* durable_after);

}  // namespace varve
