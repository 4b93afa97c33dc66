// The handlers of all commands, for the command table. Each writes exactly one reply (or hands over a ReplyStream).
// `arguments[0]` is the command's name; their number fits the command's arity.
#pragma once

#include "server/command_context.h"
#include "server/request_batch.h"

namespace varve {

// commands_connection.cc
void HandlePing(CommandContext& context, Arguments arguments);
void HandleEcho(CommandContext& context, Arguments arguments);
void HandleQuit(CommandContext& context, Arguments arguments);
void HandleHello(CommandContext& context, Arguments arguments);
void HandleSelect(CommandContext& context, Arguments arguments);
void HandleClient(CommandContext& context, Arguments arguments);

// commands_server.cc
void HandleCommand(CommandContext& context, Arguments arguments);
void HandleConfig(CommandContext& context, Arguments arguments);
void HandleInfo(CommandContext& context, Arguments arguments);
void HandleDbSize(CommandContext& context, Arguments arguments);
void HandleFlushAll(CommandContext& context, Arguments arguments);
void HandleCompact(CommandContext& context, Arguments arguments);

// commands_key.cc
void HandleGet(CommandContext& context, Arguments arguments);
void HandleSet(CommandContext& context, Arguments arguments);
void HandleMGet(CommandContext& context, Arguments arguments);
void HandleMSet(CommandContext& context, Arguments arguments);
void HandleDel(CommandContext& context, Arguments arguments);
void HandleExists(CommandContext& context, Arguments arguments);
void HandleIncr(CommandContext& context, Arguments arguments);

// commands_range.cc
void HandleRange(CommandContext& context, Arguments arguments);
void HandlePrefix(CommandContext& context, Arguments arguments);
void HandleCount(CommandContext& context, Arguments arguments);
void HandleDelRange(CommandContext& context, Arguments arguments);

}  // namespace varve
