// The queue of requests between MULTI and EXEC: a request waits, or is refused, and then EXEC will
// execute none.
//
// Thread-safety: the thread that executes for the connection calls these functions.
#pragma once

#include "server/execution/command_context.h"
#include "server/requests/command.h"

namespace varve {

// Returns whether the client is between MULTI and EXEC and the command is none of those that are
// executed there. Then it was queued, or refused, and that was answered.
[[nodiscard]] bool QueuedByTransaction(CommandContext& context, const Command& command,
                                       Arguments arguments);

// Notes that a request was refused before it could be executed or queued, with the error that
// begins at `begin` in the replies. EXEC itself says that the transaction is over. `command` is
// null for an unknown one.
void NoteRefused(CommandContext& context, const Command* command, size_t begin);

}  // namespace varve
