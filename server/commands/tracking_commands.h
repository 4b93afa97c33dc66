// The subcommands of CLIENT for caches of clients: TRACKING, CACHING, GETREDIR and TRACKINGINFO,
// with the words of Redis 7.0.
//
// Thread-safety: the thread that executes for the connection calls these functions.
#pragma once

#include "server/execution/command_context.h"
#include "server/requests/request_batch.h"

namespace varve {

void HandleTracking(CommandContext& context, Arguments arguments);
void HandleCaching(CommandContext& context, Arguments arguments);
void HandleGetRedir(CommandContext& context);
void HandleTrackingInfo(CommandContext& context);

}  // namespace varve
