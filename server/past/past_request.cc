#include "server/past/past_request.h"

#include <cstddef>
#include <string_view>

#include "fmt/format.h"
#include "server/access/command_catalog.h"
#include "server/execution/request_checks.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// A name that is longer than all names of commands is looked up by its begin, and not found.
constexpr size_t kLookedUp = 128;

// Returns null if the server has no command of that name.
const Command* FindCommandIn(const CommandCatalog& catalog, std::string_view name) {
  const std::optional<size_t> number = catalog.Find(name.substr(0, kLookedUp));
  if (!number || catalog.entry(*number).subcommand != nullptr) return nullptr;
  return catalog.entry(*number).command;
}

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

}  // namespace

bool TakesPastRequest(const Command& command) { return command.name == "at"; }

std::optional<PastRequest> TakePastRequest(CommandContext& context, Arguments arguments) {
  VARVE_ASSERT(!arguments.empty());
  const absl::StatusOr<PastPoint> point = ParsePastPoint(arguments.subspan(1));
  if (!point.ok()) {
    context.Fail(point.status());
    return std::nullopt;
  }
  const Arguments request = arguments.subspan(1 + point->words);
  if (request.empty()) {
    ReplyWrongArity(context, "at");
    return std::nullopt;
  }
  const Command* const command = FindCommandIn(context.server.clients.users.catalog(), request[0]);
  if (command == nullptr) {
    ReplyUnknownCommand(context, request);
    return std::nullopt;
  }
  if (!TakesArguments(*command, request)) {
    ReplyWrongArguments(context, *command, request);
    return std::nullopt;
  }
  if (TakesPastRequest(*command) || !OnlyReads(*command, request)) {
    context.reply.Error(fmt::format("ERR AT takes a command that reads, which '{}' is not",
                                    FullCommandName(*command, request)));
    return std::nullopt;
  }
  const bool is_container = (command->flags & kContainerCommand) != 0;
  if (is_container && !AcceptsSubcommand(context, *command, request)) return std::nullopt;
  return PastRequest{*point, command, request};
}

}  // namespace varve
