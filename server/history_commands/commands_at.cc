// AT: any read as of a version, or of a time.
#include <optional>

#include "server/commands/command_groups.h"
#include "server/execution/rights_check.h"
#include "server/past/past_read.h"
#include "server/past/past_request.h"

namespace varve {
namespace {

// Returns whether the client may not execute the request; that was answered.
bool Refused(CommandContext& context, const Command& command, Arguments request) {
  if (context.in_transaction()) return RefusedAtExec(context, command, request);
  const RightsCheck checked = CheckRights(context, command, request);
  if (checked == RightsCheck::kUserGone) context.CloseWithoutReply();
  return checked != RightsCheck::kAllowed;
}

// AT version|TIME ms|AGO seconds command [argument ...]
void HandleAt(CommandContext& context, Arguments arguments) {
  const std::optional<PastRequest> past = TakePastRequest(context, arguments);
  if (!past || Refused(context, *past->command, past->arguments)) return;
  ExecuteAt(context, past->point, past->command->handler, past->arguments);
}

constexpr Command kAtRows[] = {
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

absl::Span<const Command> PastCommands() { return kAtRows; }

}  // namespace varve
