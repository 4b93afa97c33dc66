// What happens to a request between MULTI and EXEC: it waits, or is refused, and then EXEC will
// execute none. Functions are called by whoever executes for the connection.
#pragma once

#include "server/commands/command_table.h"
#include "server/execution/command_context.h"

namespace varve {

// The client is between MULTI and EXEC, and the command is none of those that are executed there:
// it was queued, or refused, and that was answered.
[[nodiscard]] bool QueuedByTransaction(CommandContext& context, const Command& command,
                                       Arguments arguments);

// A request was refused before it could be executed or queued, with the error that begins at
// `begin` in the replies. EXEC itself says that the transaction is over. `command` is null for an
// unknown one.
void NoteRefused(CommandContext& context, const Command* command, size_t begin);

// Forgets what was queued and watched.
void EndTransaction(ClientState* client);
// Shows others how much the client has queued and watches.
void ShowTransaction(ClientState* client);

}  // namespace varve
