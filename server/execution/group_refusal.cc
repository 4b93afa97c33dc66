#include "server/execution/group_refusal.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "util/base/letter_case.h"
#include "util/resp/resp_parser.h"
#include "varve/key_group.h"

namespace varve {
namespace {

// Change a range of keys or a whole namespace, and so more than one group.
constexpr std::string_view kWholeCommands[] = {"delprefix", "delrange", "flushall", "flushdb"};

bool ChangesWhole(const Command& command) {
  return std::find(std::begin(kWholeCommands), std::end(kWholeCommands), command.name) !=
         std::end(kWholeCommands);
}

void AddKeys(const Command& command, Arguments arguments, NamespaceId space, GroupCheck* check) {
  const size_t count = KeyCount(command, arguments.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t place =
        static_cast<size_t>(command.keys.first) + i * static_cast<size_t>(command.keys.step);
    if (place < arguments.size()) check->Key(space, arguments[place]);
  }
}

bool Refused(CommandContext& context, const GroupCheck& check) {
  if (!check.status().ok()) context.Fail(check.status());
  return !check.status().ok();
}

// Returns the namespace in use behind the request.
NamespaceId SpaceBehind(const Command& command, Arguments arguments, NamespaceId space) {
  int64_t database = 0;
  if (command.name != "select" || arguments.size() != 2 ||
      !ParseRespInteger(arguments[1], &database) || database < 0)
    return space;
  return static_cast<NamespaceId>(database);
}

}  // namespace

bool RefusedAcrossGroups(CommandContext& context, const Command& command, Arguments arguments) {
  const NamespaceId space = context.space();
  const std::optional<KeyGrouping> grouping = context.server.store->GroupsOf(space);
  if (!grouping) return false;
  const auto groups_of = [&](NamespaceId) { return grouping; };
  GroupCheck check(groups_of);
  AddKeys(command, arguments, space, &check);
  return Refused(context, check);
}

bool RefusedAcrossGroups(CommandContext& context, std::string_view source, NamespaceId space,
                         std::string_view target) {
  const auto groups_of = [&](NamespaceId of) { return context.server.store->GroupsOf(of); };
  GroupCheck check(groups_of);
  check.Key(context.space(), source);
  check.Key(space, target);
  return Refused(context, check);
}

bool RefusedAcrossGroups(CommandContext& context, const ClientTransaction& transaction) {
  const auto groups_of = [&](NamespaceId of) { return context.server.store->GroupsOf(of); };
  GroupCheck check(groups_of);
  bool is_one_step = !transaction.watched.empty() || !transaction.watched_ranges.empty();
  for (const WatchedKey& watched : transaction.watched) check.Key(watched.space, watched.key);
  for (const WatchedRange& watched : transaction.watched_ranges)
    check.Range(watched.space, watched.lower, watched.upper);
  NamespaceId space = context.space();
  for (const QueuedRequest& request : transaction.requests) {
    const Command& command = request.command();
    const Arguments arguments = request.arguments();
    space = SpaceBehind(command, arguments, space);
    is_one_step = is_one_step || (command.flags & kWriteCommand) != 0;
    AddKeys(command, arguments, space, &check);
    if (!ChangesWhole(command)) continue;
    check.Whole(space);
    check.Whole(space);  // never inside a transaction where keys have groups, also alone
  }
  return is_one_step && Refused(context, check);
}

}  // namespace varve
