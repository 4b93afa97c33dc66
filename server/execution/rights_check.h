// The check of requests against the rights of the client's user, the replies to those that it may
// not execute, and the log of them.
//
// Thread-safety: the thread that executes for the connection calls these functions.
#pragma once

#include <string_view>

#include "server/access/permissions.h"
#include "server/execution/command_context.h"
#include "server/requests/command.h"

namespace varve {

enum class RightsCheck : uint8_t {
  kAllowed,
  kRefused,   // the error was answered
  kUserGone,  // the user was removed: the connection is to be closed
};

// Checks a request that was read from the connection, also one that MULTI is to queue.
[[nodiscard]] RightsCheck CheckRights(CommandContext& context, const Command& command,
                                      Arguments arguments);
// Returns whether CheckRights() would allow the request and do nothing else: neither look the user
// up again nor count the request against limits of the user. Requires: MULTI is not open.
[[nodiscard]] bool MayExecute(const CommandCatalog& catalog, const ClientState& client,
                              const Command& command, Arguments arguments);
// Checks a queued request again that EXEC is about to execute. True: the error was answered.
[[nodiscard]] bool RefusedAtExec(CommandContext& context, const Command& command,
                                 Arguments arguments);

// Tells the audit log of an executed command if it is one of @admin.
// Requires: there is an audit log.
void NoteExecuted(CommandContext& context, const Command& command, Arguments arguments);

// Counts and logs a login that failed.
void NoteFailedLogin(CommandContext& context, std::string_view verb, std::string_view user);

// Returns the place that the client works in.
Place PlaceOfClient(const ClientState& client);

// Answers that the user may not do what `denial` names, and logs that.
void ReplyDenied(CommandContext& context, const Denial& denial);

}  // namespace varve
