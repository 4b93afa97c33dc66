// Commands that concern the connection alone.
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "server/client_modes.h"
#include "server/client_name.h"
#include "server/command_groups.h"
#include "server/command_table.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

void HandlePing(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 2) return ReplyWrongArity(context, "ping");
  if (context.reply.protocol() < 3 && context.client.modes.Subscribed()) {  // where a message would be expected
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
  LeaveModes(&context.server, &context.client);
  if (Mailbox& mailbox = context.client.link.mailbox; !mailbox.empty()) {
    context.DependOn(mailbox.TakeAll(context.reply.buffer(), context.client.protocol));
  }
  RenameClient(&context.client, "");
  context.client.protocol = 2;
  context.reply.set_protocol(2);
  context.reply.Simple("RESET");
}

void HandleSelect(CommandContext& context, Arguments arguments) {
  int64_t index = 0;
  if (!ParseRespInteger(arguments[1], &index))
    return context.reply.Error("ERR value is not an integer or out of range");
  if (index != 0) return context.reply.Error("ERR DB index is out of range");
  context.reply.Ok();
}

void HandleHello(CommandContext& context, Arguments arguments) {
  int64_t protocol = context.client.protocol;
  if (arguments.size() > 1) {
    if (!ParseRespInteger(arguments[1], &protocol)) {
      return context.reply.Error("ERR Protocol version is not an integer or out of range");
    }
    if (protocol != 2 && protocol != 3) return context.reply.Error("NOPROTO unsupported protocol version");
  }
  std::string_view name;
  bool named = false;
  for (size_t i = 2; i < arguments.size(); ++i) {
    if (EqualsIgnoreCase(arguments[i], "auth") && i + 2 < arguments.size()) {
      if (!EqualsIgnoreCase(arguments[i + 1], "default")) {
        return context.reply.Error("WRONGPASS invalid username-password pair or user is disabled.");
      }
      i += 2;  // no password is set for the only user, so any is right
    } else if (EqualsIgnoreCase(arguments[i], "setname") && i + 1 < arguments.size()) {
      name = arguments[++i];
      named = true;
    } else {
      return context.reply.Error(fmt::format("ERR Syntax error in HELLO option '{}'", arguments[i].substr(0, 128)));
    }
  }
  if (named && !SetClientName(context, name)) return;
  context.client.protocol = static_cast<int>(protocol);
  context.reply.set_protocol(context.client.protocol);
  RespWriter& reply = context.reply;
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("varve");
  reply.Bulk("version");
  reply.Bulk(kRedisVersion);
  reply.Bulk("proto");
  reply.Integer(protocol);
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(context.client.id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.Array(0);
}

}  // namespace

absl::Span<const Command> ConnectionCommands() {
  static constexpr Command kRows[] = {
      {"echo", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleEcho, "connection",
       "Answers its argument.", "message"},
      {"hello", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleHello, "connection",
       "Chooses the version of the protocol.", "[2 | 3 [AUTH username password] [SETNAME name]]"},
      {"ping", -1, kConnectionCommand | kFastCommand | kSubscriberCommand, 0, 0, 0, CommandKind::kOther, HandlePing,
       "connection", "Answers PONG, or its argument.", "[message]"},
      {"quit", -1, kConnectionCommand | kFastCommand | kSubscriberCommand, 0, 0, 0, CommandKind::kOther, HandleQuit,
       "connection", "Closes the connection after the replies before it.", ""},
      {"reset", 1, kConnectionCommand | kFastCommand | kSubscriberCommand, 0, 0, 0, CommandKind::kOther, HandleReset,
       "connection", "Makes the connection what it was when it came.", ""},
      {"select", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleSelect, "connection",
       "Accepts database 0, the only one.", "index"},
  };
  return kRows;
}

}  // namespace varve
