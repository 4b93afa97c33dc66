// CLIENT: what the server knows of connections.
#include <algorithm>
#include <chrono>
#include <string>

#include "fmt/format.h"
#include "server/clients/client_description.h"
#include "server/clients/client_name.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/commands/tracking_commands.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr int64_t kLongestPause = int64_t{1000} * 365 * 86400 * 100;  // milliseconds

bool ReadType(CommandContext& context, std::string_view text, ClientFilter* filter) {
  for (const std::string_view known : {"normal", "pubsub", "master", "replica", "slave"}) {
    if (!EqualsIgnoreCase(text, known)) continue;
    filter->type = std::string(known);
    return true;
  }
  context.reply.Error(fmt::format("ERR Unknown client type '{}'", ShownInError(text)));
  return false;
}

void ReplyList(CommandContext& context, const ClientFilter& filter) {
  std::string text;
  const uint64_t self = context.client.id;
  context.server.clients.registry.ForEach([&](ClientState& client) {
    if (filter.Matches(client, self)) text += DescribeClient(client, client.id == self);
  });
  context.reply.Verbatim(text);
}

void HandleClientList(CommandContext& context, Arguments arguments) {
  ClientFilter filter;
  if (arguments.size() == 2) return ReplyList(context, filter);
  if (arguments.size() == 4 && EqualsIgnoreCase(arguments[2], "type")) {
    if (ReadType(context, arguments[3], &filter)) ReplyList(context, filter);
    return;
  }
  if (arguments.size() < 4 || !EqualsIgnoreCase(arguments[2], "id"))
    return ReplySyntaxError(context);
  for (const std::string_view text : arguments.subspan(3)) {
    int64_t id = 0;
    if (!ParseRespInteger(text, &id) || id < 0) return context.reply.Error("ERR Invalid client ID");
    filter.ids.push_back(static_cast<uint64_t>(id));
  }
  ReplyList(context, filter);
}

// Returns how many were chosen.
int64_t Kill(CommandContext& context, const ClientFilter& filter) {
  int64_t killed = 0;
  const uint64_t self = context.client.id;
  context.server.clients.registry.ForEach([&](ClientState& client) {
    if (!filter.Matches(client, self)) return;
    ++killed;
    if (client.id == self) {
      client.close_after_reply = true;  // so that it learns of it
    } else {
      client.link.mailbox.RequestClose();
    }
  });
  return killed;
}

// Reads the new form: pairs of option and value. False: the error was answered.
bool ReadKillOptions(CommandContext& context, Arguments options, ClientFilter* filter) {
  filter->skip_self = true;
  for (size_t i = 0; i < options.size(); i += 2) {
    if (i + 1 == options.size()) {
      ReplySyntaxError(context);
      return false;
    }
    const std::string_view option = options[i];
    const std::string_view value = options[i + 1];
    if (EqualsIgnoreCase(option, "id")) {
      int64_t id = 0;
      if (!ParseRespInteger(value, &id) || id < 1) {
        context.reply.Error("ERR client-id should be greater than 0");
        return false;
      }
      filter->ids.assign(1, static_cast<uint64_t>(id));
    } else if (EqualsIgnoreCase(option, "type")) {
      if (!ReadType(context, value, filter)) return false;
    } else if (EqualsIgnoreCase(option, "addr")) {
      filter->address = std::string(value);
    } else if (EqualsIgnoreCase(option, "laddr")) {
      filter->local_address = std::string(value);
    } else if (EqualsIgnoreCase(option, "user")) {
      if (context.server.clients.users.Find(value) == nullptr) {
        context.reply.Error(fmt::format("ERR No such user '{}'", ShownInError(value)));
        return false;
      }
      filter->user = std::string(value);
    } else if (EqualsIgnoreCase(option, "skipme") &&
               (EqualsIgnoreCase(value, "yes") || EqualsIgnoreCase(value, "no"))) {
      filter->skip_self = EqualsIgnoreCase(value, "yes");
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

void HandleKill(CommandContext& context, Arguments arguments) {
  ClientFilter filter;
  if (arguments.size() == 3) {
    filter.address = std::string(arguments[2]);
    if (Kill(context, filter) == 0) return context.reply.Error("ERR No such client");
    return context.reply.Ok();
  }
  if (ReadKillOptions(context, arguments.subspan(2), &filter))
    context.reply.Integer(Kill(context, filter));
}

void HandleSetInfo(CommandContext& context, Arguments arguments) {
  ClientState& client = context.client;
  const bool is_name = EqualsIgnoreCase(arguments[2], "lib-name");
  if (!is_name && !EqualsIgnoreCase(arguments[2], "lib-ver")) {
    return context.reply.Error(
        fmt::format("ERR Unrecognized option '{}'", ShownInError(arguments[2])));
  }
  const absl::Status status = CheckClientName(is_name ? "lib-name" : "lib-ver", arguments[3]);
  if (!status.ok()) return context.Fail(status);
  absl::MutexLock lock(&client.link.names_mutex);
  (is_name ? client.library_name : client.library_version).assign(arguments[3]);
  context.reply.Ok();
}

void HandleReply(CommandContext& context, std::string_view mode) {
  using Replies = ClientModes::Replies;
  Replies& replies = context.client.modes.replies;
  if (EqualsIgnoreCase(mode, "on")) {
    replies = Replies::kOn;
    context.reply.Ok();
  } else if (EqualsIgnoreCase(mode, "off")) {
    replies = Replies::kOff;
  } else if (EqualsIgnoreCase(mode, "skip")) {
    if (replies != Replies::kOff) replies = Replies::kSkipNext;
    context.NoReply();
  } else {
    ReplySyntaxError(context);
  }
}

void HandleSwitch(CommandContext& context, Arguments arguments) {
  const bool on = EqualsIgnoreCase(arguments[2], "on");
  if (!on && !EqualsIgnoreCase(arguments[2], "off")) return ReplySyntaxError(context);
  if (EqualsIgnoreCase(arguments[1], "no-evict"))
    context.client.link.no_evict.store(on, std::memory_order_relaxed);
  else
    context.client.modes.no_touch = on;
  context.reply.Ok();
}

// Of what blocks, only requests for changes are ended; as in Redis, CLIENT PAUSE goes on.
void HandleUnblock(CommandContext& context, Arguments arguments) {
  int64_t id = 0;
  if (arguments.size() > 4) return ReplyWrongArity(context, "client|unblock");
  if (arguments.size() == 4 && !EqualsIgnoreCase(arguments[3], "timeout") &&
      !EqualsIgnoreCase(arguments[3], "error")) {
    return context.reply.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  if (!ParseRespInteger(arguments[2], &id)) {
    return context.reply.Error(kNoInteger);
  }
  const bool is_error = arguments.size() == 4 && EqualsIgnoreCase(arguments[3], "error");
  bool unblocked = false;
  context.server.clients.registry.Visit(static_cast<uint64_t>(id), [&](ClientState& client) {
    unblocked = context.server.clients.changes.Unblock(&client.link, is_error);
  });
  context.reply.Integer(unblocked ? 1 : 0);
}

void HandlePause(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 4) return ReplySubcommandSyntax(context, arguments);
  ClientPause::Kind kind = ClientPause::Kind::kAll;
  if (arguments.size() == 4 && EqualsIgnoreCase(arguments[3], "write")) {
    kind = ClientPause::Kind::kWrites;
  } else if (arguments.size() == 4 && !EqualsIgnoreCase(arguments[3], "all")) {
    return context.reply.Error("ERR CLIENT PAUSE mode must be WRITE or ALL");
  }
  int64_t milliseconds = 0;
  if (!ParseRespInteger(arguments[2], &milliseconds) || milliseconds > kLongestPause) {
    return context.reply.Error("ERR timeout is not an integer or out of range");
  }
  if (milliseconds < 0) return context.reply.Error("ERR timeout is negative");
  context.server.clients.pause.Begin(
      kind, std::chrono::milliseconds(milliseconds),
      [&](std::chrono::milliseconds left) { context.server.store->PauseExpiry(left); });
  context.reply.Ok();
}

void HandleUnpause(CommandContext& context) {
  context.server.clients.pause.End(
      [&](std::chrono::milliseconds left) { context.server.store->PauseExpiry(left); });
  context.reply.Ok();
}

void HandleClient(CommandContext& context, Arguments arguments) {
  ClientState& client = context.client;
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "setname") {
    const absl::Status status = CheckClientName("Client names", arguments[2]);
    if (!status.ok()) return context.Fail(status);
    RenameClient(&client, arguments[2]);
    context.reply.Ok();
  } else if (what == "getname") {
    if (client.name.empty()) return context.reply.Null();
    context.reply.Bulk(client.name);
  } else if (what == "id") {
    context.reply.Integer(static_cast<int64_t>(client.id));
  } else if (what == "info") {
    context.reply.Verbatim(DescribeClient(client, true));
  } else if (what == "list") {
    HandleClientList(context, arguments);
  } else if (what == "kill") {
    HandleKill(context, arguments);
  } else if (what == "setinfo") {
    HandleSetInfo(context, arguments);
  } else if (what == "reply") {
    HandleReply(context, arguments[2]);
  } else if (what == "no-evict" || what == "no-touch") {
    HandleSwitch(context, arguments);
  } else if (what == "unblock") {
    HandleUnblock(context, arguments);
  } else if (what == "pause") {
    HandlePause(context, arguments);
  } else if (what == "unpause") {
    HandleUnpause(context);
  } else if (what == "tracking") {
    HandleTracking(context, arguments);
  } else if (what == "trackinginfo") {
    HandleTrackingInfo(context);
  } else if (what == "getredir") {
    HandleGetRedir(context);
  } else if (what == "version") {
    context.reply.Integer(static_cast<int64_t>(client.last_write));
  } else {  // caching
    HandleCaching(context, arguments);
  }
}

constexpr Command kClientRows[] = {
    {.name = "client",
     .arity = -2,
     .flags = kConnectionCommand | kContainerCommand | kLocalCommand,
     .handler = HandleClient,
     .group = "connection",
     .summary = "Shows or sets what the server knows of connections.",
     .syntax =
         "CACHING | GETNAME | GETREDIR | ID | INFO | KILL | LIST | NO-EVICT | NO-TOUCH | PAUSE | "
         "REPLY | SETINFO | "
         "SETNAME | "
         "TRACKING | TRACKINGINFO | UNBLOCK | UNPAUSE | VERSION | HELP"},
};

}  // namespace

absl::Span<const Command> ClientCommands() { return kClientRows; }

}  // namespace varve
