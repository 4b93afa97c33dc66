// CONFIG: shows and changes the settings in force.
#include <string>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "util/base/glob.h"

namespace varve {
namespace {

// As it was asked for, where that was without a pattern.
std::string_view ShownName(std::string_view name, Arguments patterns) {
  for (const std::string_view pattern : patterns) {
    if (pattern.find_first_of("*?[") == std::string_view::npos) {
      if (EqualsIgnoreCase(pattern, name)) return pattern;
    } else if (GlobMatches(pattern, name, GlobCase::kInsensitive)) {
      break;
    }
  }
  return name;
}

void ConfigGet(CommandContext& context, Arguments patterns) {
  for (const std::string_view pattern : patterns) {
    if (pattern.size() > kMaxGlobPattern) {
      return context.reply.Error(
          fmt::format("ERR a pattern has at most {} bytes", kMaxGlobPattern));
    }
  }
  const auto matches = context.server.configuration.Get(patterns);
  context.reply.Map(matches.size());
  for (const auto& [name, value] : matches) {
    context.reply.Bulk(ShownName(name, patterns));
    context.reply.Bulk(value);
  }
}

void ConfigSet(CommandContext& context, Arguments pairs) {
  if (pairs.size() % 2 != 0) return ReplySyntaxError(context);
  const absl::Status set = context.server.configuration.Set(context.server, pairs);
  const std::string message(set.message());
  if (absl::IsNotFound(set)) {
    context.reply.Error(
        fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{:.128}'{}",
                    message, SettingSuggestion(message)));
  } else if (!set.ok()) {
    context.reply.Error(
        fmt::format("ERR CONFIG SET failed (possibly related to argument {}", message));
  } else {
    context.reply.Ok();
  }
}

void ConfigRewrite(CommandContext& context) {
  const absl::Status rewritten = context.server.configuration.Rewrite();
  if (rewritten.ok()) return context.reply.Ok();
  const std::string message(rewritten.message());
  context.reply.Error(absl::IsFailedPrecondition(rewritten)
                          ? "ERR " + message
                          : "ERR Rewriting config file: " + message);
}

void HandleConfig(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  const Arguments rest = arguments.subspan(2);
  if (what == "get") {
    ConfigGet(context, rest);
  } else if (what == "set") {
    ConfigSet(context, rest);
  } else if (what == "rewrite") {
    ConfigRewrite(context);
  } else {  // resetstat
    context.server.ResetStatistics();
    context.reply.Ok();
  }
}

constexpr Command kConfigRows[] = {
    {.name = "config",
     .arity = -2,
     .flags = kAdminCommand | kSlowCommand | kSecretArguments | kContainerCommand,
     .handler = HandleConfig,
     .group = "server",
     .summary = "Shows and changes the settings in force.",
     .syntax = "GET | RESETSTAT | REWRITE | SET | HELP"},
};

}  // namespace

absl::Span<const Command> ConfigCommands() { return kConfigRows; }

}  // namespace varve
