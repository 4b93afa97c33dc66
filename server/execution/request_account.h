// What is kept of each request that was executed: statistics of commands and errors, the slow log.
// Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/requests/command.h"
#include "server/requests/request_batch.h"

namespace varve {

// Executing it took so long. `command` is null for an unknown one.
void AccountSlowRequest(ServerState* server, const ClientState& client, const Command* command,
                        Arguments arguments, uint64_t nanos);

// It was answered with `reply`, which may be an error.
void AccountReply(ServerState* server, const Command* command, std::string_view reply);

}  // namespace varve
