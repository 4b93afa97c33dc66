// The request that stands behind AT and a past point. What executes it, tells its keys or tells
// whether a user may execute it takes it apart here, so that all of them answer the same errors.
//
// Thread-safety: the thread that executes for the connection calls these functions.
#pragma once

#include <optional>

#include "server/execution/command_context.h"
#include "server/requests/command.h"
#include "server/requests/past_point.h"

namespace varve {

struct PastRequest {
  PastPoint point;
  const Command* command = nullptr;  // reads, and is not AT
  Arguments arguments;               // begin with its name, and fit its arity
};

// Returns whether the command is AT, whose arguments are a past point and a request.
bool TakesPastRequest(const Command& command);

// Takes apart a request for AT. Nothing: it is wrong, and the error has been answered. The rights
// of the client are not checked.
// Requires: `arguments` begin with the name of AT.
std::optional<PastRequest> TakePastRequest(CommandContext& context, Arguments arguments);

}  // namespace varve
