#include "server/execution/request_checks.h"

#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "server/requests/foreign_commands.h"
#include "util/base/assert.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

// The number of bytes sent by a client that an error text repeats.
constexpr size_t kShownOfNames = 128;
constexpr size_t kShownOfWords = 1024;

// Returns at most `limit` bytes, for an error text, which ends at a zero like that of Redis.
std::string_view Head(std::string_view text, size_t limit) {
  return text.substr(0, std::min(limit, text.find('\0')));
}

}  // namespace

bool RefusedByModes(CommandContext& context, const Command& command, Arguments arguments) {
  const ClientState& client = context.client;
  if (client.protocol < 3 && client.modes.Subscribed() &&
      (command.flags & kSubscriberCommand) == 0) {
    context.reply.Error(
        fmt::format("ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT "
                    "/ RESET are allowed in "
                    "this context",
                    FullCommandName(command, arguments)));
    return true;
  }
  if (client.modes.monitoring && (command.flags & (kReadCommand | kWriteCommand)) != 0) {
    // What Redis says to those who monitor.
    context.reply.Error("ERR Replica can't interact with the keyspace");
    return true;
  }
  return false;
}

bool AcceptsSubcommand(CommandContext& context, const Command& command, Arguments arguments) {
  VARVE_ASSERT((command.flags & kContainerCommand) != 0);
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  if (subcommand == nullptr) {
    if (arguments.size() < 2) return true;  // without one it says something, too
    context.reply.Error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                                    NameInError(arguments[1]), UpperCase(command.name)));
    return false;
  }
  if (ArityMatches(subcommand->arity, arguments.size())) return true;
  ReplyWrongArity(context, subcommand->name);
  return false;
}

void ReplyUnknownCommand(CommandContext& context, Arguments arguments) {
  if (const std::string foreign = ForeignCommandError(arguments[0]); !foreign.empty()) {
    return context.reply.Error(foreign);
  }
  std::string shown;
  for (size_t i = 1; i < arguments.size() && shown.size() < kShownOfNames; ++i) {
    shown += fmt::format("'{}' ", Head(arguments[i], kShownOfNames - shown.size()));
  }
  context.reply.Error(fmt::format("ERR unknown command '{}', with args beginning with: {}",
                                  NameInError(arguments[0]), shown));
}

void ReplyWrongArity(CommandContext& context, std::string_view name) {
  context.reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", name));
}

void ReplySyntaxError(CommandContext& context) { context.reply.Error("ERR syntax error"); }

std::string_view NameInError(std::string_view name) { return Head(name, kShownOfNames); }

std::string_view ShownInError(std::string_view text) { return Head(text, kShownOfWords); }

}  // namespace varve
