// AT: any read as of a version, or of a time.
#include <optional>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/request_checks.h"
#include "server/execution/rights_check.h"
#include "server/past/past_read.h"

namespace varve {
namespace {

// Returns whether the request reads and does nothing else.
bool OnlyReads(const Command& command, Arguments request) {
  constexpr uint32_t kMore = kWriteCommand | kAdminCommand | kTransactionCommand |
                             kMaintenanceCommand | kConnectionCommand | kPubSubCommand |
                             kPresentCommand;
  if ((command.flags & kContainerCommand) == 0)
    return (command.flags & kReadCommand) != 0 && (command.flags & kMore) == 0;
  const Subcommand* const subcommand = FindSubcommand(command, request);
  return subcommand != nullptr && (subcommand->flags & kReadCommand) != 0 &&
         ((command.flags | subcommand->flags) & kMore) == 0;
}

// Returns whether the client may not execute the request; that was answered.
bool Refused(CommandContext& context, const Command& command, Arguments request) {
  if (context.in_transaction()) return RefusedAtExec(context, command, request);
  const RightsCheck checked = CheckRights(context, command, request);
  if (checked == RightsCheck::kUserGone) context.CloseWithoutReply();
  return checked != RightsCheck::kAllowed;
}

// AT version|TIME ms|AGO seconds command [argument ...]
void HandleAt(CommandContext& context, Arguments arguments) {
  const absl::StatusOr<PastPoint> point = ParsePastPoint(arguments.subspan(1));
  if (!point.ok()) return context.Fail(point.status());
  const Arguments request = arguments.subspan(1 + point->words);
  if (request.empty()) return ReplyWrongArity(context, "at");
  const Command* const command = FindCommand(request[0]);
  if (command == nullptr) return ReplyUnknownCommand(context, request);
  if (!TakesArguments(*command, request)) return ReplyWrongArity(context, command->name);
  if (command->handler == HandleAt || !OnlyReads(*command, request)) {
    return context.reply.Error(fmt::format("ERR AT takes a command that reads, which '{}' is not",
                                           FullCommandName(*command, request)));
  }
  if (Refused(context, *command, request)) return;
  ExecuteAt(context, *point, command->handler, request);
}

constexpr Command kRows[] = {
    {.name = "at",
     .arity = -3,
     .flags = kReadCommand | kSlowCommand,
     .handler = HandleAt,
     .group = "generic",
     .summary = "Executes a command that reads as of a version, an instant, or some time ago.",
     .syntax = "version|TIME ms|AGO seconds command [argument ...]",
     .complexity = "That of the command"},
};

}  // namespace

absl::Span<const Command> PastCommands() { return kRows; }

}  // namespace varve
