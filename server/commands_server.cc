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
