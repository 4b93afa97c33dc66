// Commands that choose databases, exchange and empty them.
#include <cstdint>
#include <optional>
#include <vector>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/database_index.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

void HandleSelect(CommandContext& context, Arguments arguments) {
  const std::optional<NamespaceId> database = ParseDatabase(context, arguments[1]);
  if (!database || !OpenDatabase(context, *database)) return;
  context.client.UseNamespace(*database);
  context.reply.Ok();
}

void HandleSwapDb(CommandContext& context, Arguments arguments) {
  // The evictor, which begins the orders of both anew, may be within a step.
  if (context.NeedsPoolFor(SIZE_MAX)) return;
  int64_t first = 0;
  int64_t second = 0;
  if (!ParseRespInteger(arguments[1], &first) || first != static_cast<int32_t>(first))
    return context.reply.Error("ERR invalid first DB index");
  if (!ParseRespInteger(arguments[2], &second) || second != static_cast<int32_t>(second))
    return context.reply.Error("ERR invalid second DB index");
  const int64_t databases = context.server.options.databases;
  if (first < 0 || second < 0 || first >= databases || second >= databases) {
    return context.reply.Error("ERR DB index is out of range");
  }
  const auto one = static_cast<NamespaceId>(first);
  const auto other = static_cast<NamespaceId>(second);
  if (!OpenDatabase(context, one) || !OpenDatabase(context, other)) return;
  if (one != other) {
    WriteBatch batch;
    batch.SwapNamespaces(one, other);
    if (!context.Submit(&batch)) return;
    context.NoteSwap(one, other);
  }
  context.reply.Ok();
}

// False: the arguments are none that FLUSHALL takes, and the error was answered.
bool ParseFlushMode(CommandContext& context, Arguments arguments) {
  const bool takes =
      arguments.size() == 1 || (arguments.size() == 2 && (EqualsIgnoreCase(arguments[1], "async") ||
                                                          EqualsIgnoreCase(arguments[1], "sync")));
  if (!takes) ReplySyntaxError(context);
  return takes;
}

void HandleFlushAll(CommandContext& context, Arguments arguments) {
  if (!ParseFlushMode(context, arguments)) return;
  WriteBatch batch;
  const absl::StatusOr<std::vector<NamespaceId>> databases = Databases(context.store);
  if (!databases.ok()) return context.Fail(databases.status());
  for (const NamespaceId database : *databases) {
    batch.ClearNamespace(database);
    // Two namespaces are never one group.
    if (context.store.GroupsOf(database) && !context.Submit(&batch)) return;
  }
  if (context.Submit(&batch)) context.reply.Ok();
}

void HandleFlushDb(CommandContext& context, Arguments arguments) {
  if (!ParseFlushMode(context, arguments)) return;
  WriteBatch batch;
  batch.ClearNamespace(context.space());
  if (context.Submit(&batch)) context.reply.Ok();
}

constexpr Command kDatabaseRows[] = {
    {.name = "flushall",
     .arity = -1,
     .flags = kWriteCommand,
     .handler = HandleFlushAll,
     .group = "server",
     .summary = "Empties all databases in constant time; named namespaces stay.",
     .syntax = "[ASYNC | SYNC]",
     .complexity = "O(D) for D databases, whatever they hold",
     .redis = {.tips = "request_policy:all_shards response_policy:all_succeeded",
               .categories = "@keyspace @dangerous"}},
    {.name = "flushdb",
     .arity = -1,
     .flags = kWriteCommand,
     .handler = HandleFlushDb,
     .group = "server",
     .summary = "Empties the database or namespace in use in constant time.",
     .syntax = "[ASYNC | SYNC]",
     .complexity = "O(1), whatever the database holds",
     .redis = {.tips = "request_policy:all_shards response_policy:all_succeeded",
               .categories = "@keyspace @dangerous"}},
    {.name = "select",
     .arity = 2,
     .flags = kConnectionCommand | kFastCommand,
     .handler = HandleSelect,
     .group = "connection",
     .summary = "Chooses the database that the commands of this connection work in.",
     .syntax = "index",
     .complexity = "O(1)",
     .redis = {.flags = "loading stale"}},
    {.name = "swapdb",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .handler = HandleSwapDb,
     .group = "server",
     .summary = "Exchanges what two databases hold, in constant time.",
     .syntax = "index1 index2",
     .complexity = "O(1), whatever the databases hold",
     .redis = {.categories = "@keyspace @dangerous"}},
};

}  // namespace

absl::Span<const Command> DatabaseCommands() { return kDatabaseRows; }

}  // namespace varve
