// Commands that concern the server as a whole.
#include <algorithm>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_table.h"
#include "server/glob.h"
#include "server/key_range.h"
#include "server/server_info.h"

namespace varve {
namespace {

// The words Redis uses for what a command does.
std::vector<std::string_view> FlagNames(const Command& command) {
  std::vector<std::string_view> names;
  if (command.flags & kWriteCommand) names.push_back("write");
  if (command.flags & kReadCommand) names.push_back("readonly");
  if (command.flags & kAdminCommand) names.push_back("admin");
  if (command.flags & kFastCommand) names.push_back("fast");
  return names;
}

void ReplyCommandInfo(RespWriter& reply, const Command& command) {
  reply.Array(10);
  reply.Bulk(command.name);
  reply.Integer(command.arity);
  const std::vector<std::string_view> flags = FlagNames(command);
  reply.Set(flags.size());
  for (const std::string_view flag : flags) reply.Simple(flag);
  reply.Integer(command.first_key);
  reply.Integer(command.last_key);
  reply.Integer(command.key_step);
  reply.Set(0);    // access categories
  reply.Array(0);  // tips
  reply.Array(0);  // key specifications
  reply.Array(0);  // subcommands
}

void ReplyCommandDocs(RespWriter& reply, const Command& command) {
  reply.Bulk(command.name);
  reply.Map(4);
  reply.Bulk("summary");
  reply.Bulk(command.summary);
  reply.Bulk("since");
  reply.Bulk(kVarveVersion);
  reply.Bulk("group");
  reply.Bulk(command.group);
  reply.Bulk("syntax");
  reply.Bulk(command.syntax);
}

std::vector<const Command*> NamedCommands(Arguments names, bool all_if_none) {
  std::vector<const Command*> commands;
  if (names.empty() && all_if_none) {
    for (const Command& command : AllCommands()) commands.push_back(&command);
  }
  for (const std::string_view name : names) commands.push_back(FindCommand(name));
  return commands;
}

void HandleCommand(CommandContext& context, Arguments arguments) {
  RespWriter& reply = context.reply;
  const std::string_view what = arguments.size() > 1 ? arguments[1] : "info";
  const Arguments names = arguments.size() > 1 ? arguments.subspan(2) : Arguments();
  if (EqualsIgnoreCase(what, "count")) {
    if (!names.empty()) return ReplyWrongArity(context, "command|count");
    reply.Integer(static_cast<int64_t>(AllCommands().size()));
  } else if (EqualsIgnoreCase(what, "list")) {
    if (!names.empty()) return ReplySyntaxError(context);
    reply.Array(AllCommands().size());
    for (const Command& command : AllCommands()) reply.Bulk(command.name);
  } else if (EqualsIgnoreCase(what, "info")) {
    const std::vector<const Command*> commands = NamedCommands(names, true);
    reply.Array(commands.size());
    for (const Command* command : commands) {
      if (command == nullptr) {
        reply.Null();
      } else {
        ReplyCommandInfo(reply, *command);
      }
    }
  } else if (EqualsIgnoreCase(what, "docs")) {
    std::vector<const Command*> commands = NamedCommands(names, true);
    commands.erase(std::remove(commands.begin(), commands.end(), nullptr), commands.end());
    reply.Map(commands.size());
    for (const Command* command : commands) ReplyCommandDocs(reply, *command);
  } else if (EqualsIgnoreCase(what, "help")) {
    ReplyHelp(
        context, arguments,
        {"(no subcommand)", "    Return how each command is called.", "COUNT", "    Return the number of commands.",
         "DOCS [<command-name> ...]", "    Return what commands are for, and their syntax.",
         "INFO [<command-name> ...]", "    Return how commands are called.", "LIST", "    Return their names."});
  } else {
    ReplyUnknownSubcommand(context, "command", what);
  }
}

void HandleConfig(CommandContext& context, Arguments arguments) {
  if (EqualsIgnoreCase(arguments[1], "help")) {
    return ReplyHelp(
        context, arguments,
        {"GET <pattern> [<pattern> ...]", "    Return the settings whose names match a pattern, and their values."});
  }
  if (!EqualsIgnoreCase(arguments[1], "get")) return ReplyUnknownSubcommand(context, "config", arguments[1]);
  if (arguments.size() < 3) return ReplyWrongArity(context, "config|get");
  for (const std::string_view pattern : arguments.subspan(2)) {
    if (pattern.size() > kMaxGlobPattern) {
      return context.reply.Error(fmt::format("ERR a pattern has at most {} bytes", kMaxGlobPattern));
    }
  }
  std::vector<const std::pair<std::string, std::string>*> matches;
  for (const auto& setting : context.server.settings) {
    const auto matched = [&](std::string_view pattern) {
      return GlobMatches(pattern, setting.first, GlobCase::kInsensitive);
    };
    if (std::any_of(arguments.begin() + 2, arguments.end(), matched)) matches.push_back(&setting);
  }
  context.reply.Map(matches.size());
  for (const auto* setting : matches) {
    context.reply.Bulk(setting->first);
    context.reply.Bulk(setting->second);
  }
}

void HandleInfo(CommandContext& context, Arguments arguments) {
  SequenceNumber gate = kNoSequence;
  context.reply.Verbatim(ServerInfo(context.server, arguments.subspan(1), &gate));
  context.DependOn(gate);
}

void HandleFlushAll(CommandContext& context, Arguments arguments) {
  const bool takes =
      arguments.size() == 1 ||
      (arguments.size() == 2 && (EqualsIgnoreCase(arguments[1], "async") || EqualsIgnoreCase(arguments[1], "sync")));
  if (!takes) return ReplySyntaxError(context);
  WriteBatch batch;
  batch.ClearNamespace();
  if (context.Submit(&batch)) context.reply.Ok();
}

void HandleCompact(CommandContext& context, Arguments arguments) {
  if (arguments.size() != 1 && arguments.size() != 3) return ReplyWrongArity(context, "compact");
  std::optional<KeyRange> range = KeyRange();
  if (arguments.size() == 3) range = ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error("ERR min or max not valid string range item");
  if (!range->empty) {
    const absl::Status status = context.store.Compact(range->lower, range->upper);
    if (!status.ok()) return context.Fail(status);
  }
  context.reply.Ok();
}

}  // namespace

absl::Span<const Command> ServerCommands() {
  static constexpr Command kRows[] = {
      {"command", -1, kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleCommand, "server",
       "Describes the commands of this server.", "[COUNT | LIST | INFO [name ...] | DOCS [name ...] | HELP]"},
      {"compact", -1, kAdminCommand | kMaintenanceCommand, 0, 0, 0, CommandKind::kOther, HandleCompact, "server",
       "Merges a range of keys down to one sorted run; answers when done.", "[min max]"},
      {"config", -2, kAdminCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleConfig, "server",
       "Shows the settings in force.", "GET pattern [pattern ...] | HELP"},
      {"flushall", -1, kWriteCommand, 0, 0, 0, CommandKind::kOther, HandleFlushAll, "server",
       "Deletes all keys in constant time.", "[ASYNC | SYNC]"},
      {"info", -1, kReadCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleInfo, "server",
       "Shows figures of the server and the engine.", "[section ...]"},
  };
  return kRows;
}

}  // namespace varve
