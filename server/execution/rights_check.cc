#include "server/execution/rights_check.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/clients/client_description.h"
#include "server/execution/denied_access.h"
#include "server/execution/request_checks.h"
#include "util/base/assert.h"

namespace varve {
namespace {

using Reason = DeniedAccess::Reason;

Reason ReasonOf(DenialReason reason) {
  switch (reason) {
    case DenialReason::kCommand:
      return Reason::kCommand;
    case DenialReason::kKey:
      return Reason::kKey;
    case DenialReason::kDatabase:
      return Reason::kDatabase;
    case DenialReason::kChannel:
      break;
  }
  return Reason::kChannel;
}

void NoteDenial(CommandContext& context, Reason reason, std::string_view command,
                std::string_view object, std::string_view user) {
  const bool queued = context.in_transaction() || context.client.modes.transaction.open;
  std::string client = DescribeClient(context.client, /*self=*/true);
  if (client.ends_with('\n')) client.pop_back();
  NoteDenied(context.server, {.reason = reason,
                              .command = command,
                              .object = object,
                              .user = user,
                              .context = queued ? "multi" : "toplevel",
                              .client = std::move(client),
                              .address = context.client.address,
                              .client_id = context.client.id});
}

// Answers that the limits of the user forbid the request, and closes the connection after that.
bool RefusedByLimits(CommandContext& context, const Command& command, Arguments arguments) {
  const User& user = context.client.rights.user();
  const std::string refusal =
      RefusalByLimits(user.limits, user.name, context.client.address, std::time(nullptr));
  if (refusal.empty()) return false;
  NoteDenial(context, Reason::kAuth, FullCommandName(command, arguments), command.name, user.name);
  context.reply.Error(refusal);
  context.client.close_after_reply = true;
  return true;
}

std::string DenialText(const Denial& denial) {
  switch (denial.reason) {
    case DenialReason::kCommand:
      return fmt::format("NOPERM this user has no permissions to run the '{}' command",
                         denial.object);
    case DenialReason::kKey:
      if (denial.argument == 0) {
        return "NOPERM this user has no permissions to access all keys, which the command needs";
      }
      if (denial.is_range) {
        return fmt::format("NOPERM this user has no permissions to {} every key in the range {}",
                           denial.is_read ? "read" : "write", ShownInError(denial.object));
      }
      return "NOPERM this user has no permissions to access one of the keys used as arguments";
    case DenialReason::kChannel:
      return "NOPERM this user has no permissions to access one of the channels used as arguments";
    case DenialReason::kDatabase:
      break;
  }
  return fmt::format("NOPERM this user has no permissions to access the {}", denial.object);
}

std::string_view ReasonAtExec(DenialReason reason) {
  switch (reason) {
    case DenialReason::kCommand:
      return "no permission to execute the command or subcommand";
    case DenialReason::kKey:
      return "no permission to touch the specified keys";
    case DenialReason::kChannel:
      return "no permission to access one of the channels used as arguments to the command";
    case DenialReason::kDatabase:
      break;
  }
  return "no permission to access the database";
}

// Where a queued SELECT will move, only EXEC knows the place.
CheckPlace WhetherToCheckPlace(const ClientState& client) {
  const auto& queued = client.modes.transaction.requests;
  const bool moves = client.modes.transaction.open &&
                     std::any_of(queued.begin(), queued.end(), [](const QueuedRequest& request) {
                       return request.command().name == "select";
                     });
  return moves ? CheckPlace::kNo : CheckPlace::kYes;
}

}  // namespace

Place PlaceOfClient(const ClientState& client) {
  return {.database = client.space, .name = client.space_name};
}

RightsCheck CheckRights(CommandContext& context, const Command& command, Arguments arguments) {
  ClientRights& rights = context.client.rights;
  if (rights.Stale() && !rights.LookAgain()) return RightsCheck::kUserGone;
  // A client that its limits refuse may log in as another user.
  if (rights.bound() && (command.flags & kBeforeLoginCommand) == 0 &&
      RefusedByLimits(context, command, arguments)) {
    return RightsCheck::kRefused;
  }
  if (!rights.limited()) return RightsCheck::kAllowed;
  if ((command.flags & kContainerCommand) != 0 && !AcceptsSubcommand(context, command, arguments)) {
    return RightsCheck::kRefused;
  }
  const std::optional<Denial> denial =
      FindDenial(context.server.clients.users.catalog(), rights.user(), command, arguments,
                 PlaceOfClient(context.client), WhetherToCheckPlace(context.client));
  if (!denial) return RightsCheck::kAllowed;
  context.client.link.last_command.store(FullCommandName(command, arguments),
                                         std::memory_order_relaxed);
  ReplyDenied(context, *denial);
  return RightsCheck::kRefused;
}

bool MayExecute(const CommandCatalog& catalog, const ClientState& client, const Command& command,
                Arguments arguments) {
  const ClientRights& rights = client.rights;
  if (rights.Stale() || rights.bound()) return false;
  return !rights.limited() ||
         !FindDenial(catalog, rights.user(), command, arguments, PlaceOfClient(client));
}

void NoteExecuted(CommandContext& context, const Command& command, Arguments arguments) {
  VARVE_ASSERT(context.server.clients.audit.on());
  const Subcommand* const subcommand =
      (command.flags & kContainerCommand) != 0 ? FindSubcommand(command, arguments) : nullptr;
  const uint32_t flags = command.flags | (subcommand != nullptr ? subcommand->flags : 0);
  if ((flags & kAdminCommand) == 0) return;
  context.server.clients.audit.Add({.event = "admin",
                                    .command = FullCommandName(command, arguments),
                                    .user = context.client.rights.user().name,
                                    .client = context.client.address,
                                    .client_id = context.client.id});
}

void ReplyDenied(CommandContext& context, const Denial& denial) {
  VARVE_ASSERT(context.client.rights.limited());
  const std::string text = DenialText(denial);
  VARVE_ASSERT(text.starts_with("NOPERM "));
  NoteDenial(context, ReasonOf(denial.reason),
             context.client.link.last_command.load(std::memory_order_relaxed), denial.object,
             context.client.rights.user().name);
  context.reply.Error(text);
}

bool RefusedAtExec(CommandContext& context, const Command& command, Arguments arguments) {
  ClientRights& rights = context.client.rights;
  std::optional<Denial> denial;
  if (rights.Stale() && !rights.LookAgain()) {
    context.client.close_after_reply = true;
    denial = Denial{DenialReason::kCommand, std::string(command.name), 0, false};
  } else if (rights.limited()) {
    denial = FindDenial(context.server.clients.users.catalog(), rights.user(), command, arguments,
                        PlaceOfClient(context.client));
  }
  if (!denial) return false;
  NoteDenial(context, ReasonOf(denial->reason), FullCommandName(command, arguments), denial->object,
             rights.user().name);
  context.reply.Error(fmt::format(
      "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: {}",
      ReasonAtExec(denial->reason)));
  return true;
}

void NoteFailedLogin(CommandContext& context, std::string_view verb, std::string_view user) {
  NoteDenial(context, Reason::kAuth, verb, verb, user);
}

}  // namespace varve
