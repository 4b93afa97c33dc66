// Commands that concern the connection alone.
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_table.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

// Names of clients and libraries show up in lists, so they are printable and without blanks.
bool IsPlainName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

std::string DescribeClient(const ClientState& client) {
  const auto age =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - client.connected);
  return fmt::format("id={} addr={} name={} age={} db=0 resp={} lib-name={} lib-ver={}\n", client.id, client.address,
                     client.name, age.count(), client.protocol, client.library_name, client.library_version);
}

bool SetName(CommandContext& context, std::string_view name) {
  if (!IsPlainName(name)) {
    context.reply.Error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  context.client.name.assign(name);
  return true;
}

void HandlePing(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 2) return ReplyWrongArity(context, "ping");
  if (arguments.size() == 2) return context.reply.Bulk(arguments[1]);
  context.reply.Simple("PONG");
}

void HandleEcho(CommandContext& context, Arguments arguments) { context.reply.Bulk(arguments[1]); }

void HandleQuit(CommandContext& context, Arguments arguments) {
  context.client.close_after_reply = true;
  context.reply.Ok();
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
  if (named && !SetName(context, name)) return;
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

// Nothing here evicts a client and no read changes a record, so these settings hold whatever they are.
void AcceptSwitch(CommandContext& context, Arguments arguments, std::string_view name) {
  if (arguments.size() != 3) return ReplyWrongArity(context, name);
  if (!EqualsIgnoreCase(arguments[2], "on") && !EqualsIgnoreCase(arguments[2], "off")) return ReplySyntaxError(context);
  context.reply.Ok();
}

void HandleClient(CommandContext& context, Arguments arguments) {
  const std::string_view what = arguments[1];
  const size_t count = arguments.size();
  ClientState& client = context.client;
  if (EqualsIgnoreCase(what, "setname")) {
    if (count != 3) return ReplyWrongArity(context, "client|setname");
    if (SetName(context, arguments[2])) context.reply.Ok();
  } else if (EqualsIgnoreCase(what, "getname")) {
    if (count != 2) return ReplyWrongArity(context, "client|getname");
    if (client.name.empty()) return context.reply.Null();
    context.reply.Bulk(client.name);
  } else if (EqualsIgnoreCase(what, "id")) {
    if (count != 2) return ReplyWrongArity(context, "client|id");
    context.reply.Integer(static_cast<int64_t>(client.id));
  } else if (EqualsIgnoreCase(what, "info")) {
    if (count != 2) return ReplyWrongArity(context, "client|info");
    context.reply.Verbatim(DescribeClient(client));
  } else if (EqualsIgnoreCase(what, "setinfo")) {
    if (count != 4) return ReplyWrongArity(context, "client|setinfo");
    const bool is_name = EqualsIgnoreCase(arguments[2], "lib-name");
    if (!is_name && !EqualsIgnoreCase(arguments[2], "lib-ver")) {
      return context.reply.Error(fmt::format("ERR Unrecognized option '{}'", arguments[2].substr(0, 128)));
    }
    if (!IsPlainName(arguments[3])) {
      return context.reply.Error(fmt::format("ERR {} cannot contain spaces, newlines or special characters.",
                                             is_name ? "lib-name" : "lib-ver"));
    }
    (is_name ? client.library_name : client.library_version).assign(arguments[3]);
    context.reply.Ok();
  } else if (EqualsIgnoreCase(what, "no-evict")) {
    AcceptSwitch(context, arguments, "client|no-evict");
  } else if (EqualsIgnoreCase(what, "no-touch")) {
    AcceptSwitch(context, arguments, "client|no-touch");
  } else if (EqualsIgnoreCase(what, "help")) {
    ReplyHelp(context, arguments,
              {"GETNAME", "    Return the name of this connection.", "ID", "    Return the number of this connection.",
               "INFO", "    Return what is known of this connection.", "NO-EVICT (ON|OFF)",
               "    Accepted: no connection is closed to win memory.", "NO-TOUCH (ON|OFF)",
               "    Accepted: no read changes a record.", "SETINFO <option> <value>",
               "    Tell the library's name or version. Options are:", "    * LIB-NAME: name of the library.",
               "    * LIB-VER: its version.", "SETNAME <name>", "    Name this connection."});
  } else {
    ReplyUnknownSubcommand(context, "client", what);
  }
}

}  // namespace

absl::Span<const Command> ConnectionCommands() {
  static constexpr Command kRows[] = {
      {"client", -2, kConnectionCommand, 0, 0, 0, CommandKind::kOther, HandleClient, "connection",
       "Shows or sets what the server knows of this connection.",
       "SETNAME name | GETNAME | ID | INFO | SETINFO attribute value | NO-EVICT on|off | NO-TOUCH on|off | HELP"},
      {"echo", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleEcho, "connection",
       "Answers its argument.", "message"},
      {"hello", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleHello, "connection",
       "Chooses the version of the protocol.", "[2 | 3 [AUTH username password] [SETNAME name]]"},
      {"ping", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandlePing, "connection",
       "Answers PONG, or its argument.", "[message]"},
      {"quit", -1, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleQuit, "connection",
       "Closes the connection after the replies before it.", ""},
      {"select", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleSelect, "connection",
       "Accepts database 0, the only one.", "index"},
  };
  return kRows;
}

}  // namespace varve
