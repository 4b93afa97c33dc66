// Commands that concern the connection alone.
#include "server/clients/client_login.h"
#include "server/clients/client_modes.h"
#include "server/clients/client_name.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"

namespace varve {
namespace {

void HandlePing(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 2) return ReplyWrongArity(context, "ping");
  // Where a message would be expected.
  if (context.reply.protocol() < 3 && context.client.modes.Subscribed()) {
    context.reply.Array(2);
    context.reply.Bulk("pong");
    return context.reply.Bulk(arguments.size() == 2 ? arguments[1] : "");
  }
  if (arguments.size() == 2) return context.reply.Bulk(arguments[1]);
  context.reply.Simple("PONG");
}

void HandleEcho(CommandContext& context, Arguments arguments) { context.reply.Bulk(arguments[1]); }

void HandleQuit(CommandContext& context, Arguments arguments) {
  context.client.close_after_reply = true;
  context.reply.Ok();
}

// The connection as it was when it came.
void HandleReset(CommandContext& context, Arguments arguments) {
  LeaveModes(&context.server.clients, &context.client);
  if (Mailbox& mailbox = context.client.link.mailbox; !mailbox.empty()) {
    context.DependOn(mailbox.TakeAll(context.reply.buffer(), context.client.protocol));
  }
  RenameClient(&context.client, "");
  context.client.Speak(2);
  context.client.UseNamespace(kDefaultNamespace);
  BecomeDefaultUser(&context.client, context.server.clients.users);
  context.reply.set_protocol(2);
  context.reply.Simple("RESET");
}

constexpr Command kConnectionRows[] = {
    {.name = "echo",
     .arity = 2,
     .flags = kConnectionCommand | kFastCommand | kLocalCommand,
     .handler = HandleEcho,
     .group = "connection",
     .summary = "Answers its argument.",
     .syntax = "message",
     .complexity = "O(1)",
     .redis = {.flags = "loading stale"}},
    {.name = "ping",
     .arity = -1,
     .flags = kConnectionCommand | kFastCommand | kSubscriberCommand | kLocalCommand,
     .handler = HandlePing,
     .group = "connection",
     .summary = "Answers PONG, or its argument.",
     .syntax = "[message]",
     .complexity = "O(1)",
     .redis = {.tips = "request_policy:all_shards response_policy:all_succeeded"}},
    {.name = "quit",
     .arity = -1,
     .flags = kConnectionCommand | kFastCommand | kSubscriberCommand | kBeforeLoginCommand |
              kInTransactionCommand | kLocalCommand,
     .handler = HandleQuit,
     .group = "connection",
     .summary = "Closes the connection after the replies before it.",
     .complexity = "O(1)",
     .redis = {.flags = "noscript loading stale allow_busy"}},
    {.name = "reset",
     .arity = 1,
     .flags = kConnectionCommand | kFastCommand | kSubscriberCommand | kBeforeLoginCommand |
              kInTransactionCommand | kLocalCommand,
     .handler = HandleReset,
     .group = "connection",
     .summary = "Makes the connection what it was when it came.",
     .complexity = "O(N) for N subscriptions and watched keys",
     .redis = {.flags = "noscript loading stale allow_busy"}},
};

}  // namespace

absl::Span<const Command> ConnectionCommands() { return kConnectionRows; }

}  // namespace varve
