// CONFIG: shows and changes the settings in force.
#include <string>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_table.h"
#include "server/glob.h"

namespace varve {
namespace {

void ConfigGet(CommandContext& context, Arguments patterns) {
  if (patterns.empty()) return ReplyWrongArity(context, "config|get");
  for (const std::string_view pattern : patterns) {
    if (pattern.size() > kMaxGlobPattern) {
      return context.reply.Error(fmt::format("ERR a pattern has at most {} bytes", kMaxGlobPattern));
    }
  }
  const auto matches = context.server.configuration.Get(patterns);
  context.reply.Map(matches.size());
  for (const auto& [name, value] : matches) {
    context.reply.Bulk(name);
    context.reply.Bulk(value);
  }
}

void ConfigSet(CommandContext& context, Arguments pairs) {
  if (pairs.size() < 2) return ReplyWrongArity(context, "config|set");
  if (pairs.size() % 2 != 0) return ReplySyntaxError(context);
  const absl::Status set = context.server.configuration.Set(context.server, pairs);
  const std::string message(set.message());
  if (absl::IsNotFound(set)) {
    context.reply.Error(fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{:.128}'{}", message,
                                    SettingSuggestion(message)));
  } else if (!set.ok()) {
    context.reply.Error(fmt::format("ERR CONFIG SET failed (possibly related to argument {}", message));
  } else {
    context.reply.Ok();
  }
}

void ConfigRewrite(CommandContext& context) {
  const absl::Status rewritten = context.server.configuration.Rewrite();
  if (rewritten.ok()) return context.reply.Ok();
  const std::string message(rewritten.message());
  context.reply.Error(absl::IsFailedPrecondition(rewritten) ? "ERR " + message
                                                            : "ERR Rewriting config file: " + message);
}

void HandleConfig(CommandContext& context, Arguments arguments) {
  const std::string_view what = arguments[1];
  const Arguments rest = arguments.subspan(2);
  if (EqualsIgnoreCase(what, "get")) {
    ConfigGet(context, rest);
  } else if (EqualsIgnoreCase(what, "set")) {
    ConfigSet(context, rest);
  } else if (EqualsIgnoreCase(what, "resetstat")) {
    if (!rest.empty()) return ReplyWrongArity(context, "config|resetstat");
    context.server.ResetStatistics();
    context.reply.Ok();
  } else if (EqualsIgnoreCase(what, "rewrite")) {
    if (!rest.empty()) return ReplyWrongArity(context, "config|rewrite");
    ConfigRewrite(context);
  } else if (EqualsIgnoreCase(what, "help")) {
    ReplyHelp(
        context, arguments,
        {"GET <pattern> [<pattern> ...]", "    Return the settings whose names match a pattern, and their values.",
         "SET <name> <value> [<name> <value> ...]", "    Change settings, all or none.", "RESETSTAT",
         "    Let the counts that INFO shows begin anew.", "REWRITE",
         "    Write the settings in force into the configuration file."});
  } else {
    ReplyUnknownSubcommand(context, "config", what);
  }
}

}  // namespace

absl::Span<const Command> ConfigCommands() {
  static constexpr Command kRows[] = {
      {"config", -2, kAdminCommand | kSlowCommand | kSecretArguments | kContainerCommand, 0, 0, 0, CommandKind::kOther,
       HandleConfig, "server", "Shows and changes the settings in force.",
       "GET pattern [pattern ...] | SET name value [name value ...] | RESETSTAT | REWRITE | HELP"},
  };
  return kRows;
}

}  // namespace varve
