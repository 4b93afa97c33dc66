// The records kept of each request that was executed: statistics of commands and errors, the slow
// log, and the lines that MONITOR shows.
//
// Thread-safety: all functions may be called on any thread that executes for the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/requests/command.h"
#include "server/requests/request_batch.h"

namespace varve {

// Adds a request that took `nanos` to the slow log. `command` is null for an unknown one.
void AccountSlowRequest(ServerState* server, const ClientState& client, const Command* command,
                        Arguments arguments, uint64_t nanos);

// Counts `count` requests of `batch` from `first` on, neighbours of one command, each of which took
// `nanos_each`, and adds them to the slow log if that is long. Requires: count > 0.
void AccountRequests(ServerState* server, const ClientState& client, const RequestBatch& batch,
                     size_t first, size_t count, uint64_t nanos_each);

// Counts `reply`, the reply to a request, if it is an error. `command` is null for an unknown one.
void AccountReply(ServerState* server, const Command* command, std::string_view reply);

// Shows `count` requests of `batch` from `first` on, which were executed in `space`, to MONITOR.
void ShowToMonitors(ServerState* server, const ClientState& client, NamespaceId space,
                    const RequestBatch& batch, size_t first, size_t count);

}  // namespace varve
