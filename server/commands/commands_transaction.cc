// Commands that make several others one step.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/clients/client_modes.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/key_update.h"
#include "server/execution/store_capability.h"
#include "server/execution/transaction_queue.h"
#include "server/execution/transaction_run.h"

namespace varve {
namespace {

void HandleMulti(CommandContext& context, Arguments) {
  ClientTransaction& transaction = context.client.modes.transaction;
  if (transaction.open) return context.reply.Error("ERR MULTI calls can not be nested");
  transaction.open = true;
  ShowTransaction(&context.client);
  context.reply.Ok();
}

void HandleDiscard(CommandContext& context, Arguments) {
  if (!context.client.modes.transaction.open)
    return context.reply.Error("ERR DISCARD without MULTI");
  EndTransaction(&context.client);
  context.reply.Ok();
}

// Returns whether the client may keep what the transaction reads in a cache.
bool CachesReads(const ClientState& client, const ClientTransaction& transaction) {
  const TrackingMode& mode = client.modes.tracking;
  if (!mode.on || mode.broadcast || mode.Remembers()) return mode.on;
  // CLIENT CACHING may be among the requests.
  return std::any_of(
      transaction.requests.begin(), transaction.requests.end(),
      [](const QueuedRequest& request) { return request.command().name == "client"; });
}

void HandleExec(CommandContext& context, Arguments) {
  if (!context.client.modes.transaction.open) return context.reply.Error("ERR EXEC without MULTI");
  ClientTransaction transaction = std::move(context.client.modes.transaction);
  EndTransaction(&context.client);
  if (transaction.refused) {
    return context.reply.Error("EXECABORT Transaction discarded because of previous errors.");
  }
  if (RefusedAcrossGroups(context, transaction)) return;
  const bool is_cached = CachesReads(context.client, transaction);
  auto run = std::make_unique<TransactionRun>(std::move(transaction), is_cached);
  if (!run->ExecuteWhole(context)) context.Stream(std::move(run));
}

// Where the key has expired and is there still, it is removed first: else its removal, later, would
// be a write to a key that is watched. During a pause nothing is removed, and a follower removes
// nothing by itself. A store without an order of all writes compares versions, of which a key that
// has expired has none.
absl::StatusOr<ReadResult> LookUpUnexpired(CommandContext& context, std::string_view key) {
  for (;;) {
    absl::StatusOr<ReadResult> read = context.LookUp(key);
    if (!read.ok() || !read->expired || context.server.clients.pause.Any() ||
        context.server.replication.follows() || !context.store.capabilities().snapshots)
      return read;
    WriteBatch& batch = ClearedBatch(context);
    batch.Delete(key);
    batch.RequireUnchanged(key, *read);
    const absl::StatusOr<CommitResult> removed = context.Commit(&batch);
    if (!removed.ok() && !absl::IsAborted(removed.status())) return removed.status();
    context.Submitted();
    if (!removed.ok()) continue;
    context.DependOn(removed->durable_after);
    context.Notify(kExpiredEvent, "expired", key);
  }
}

void HandleWatch(CommandContext& context, Arguments arguments) {
  ClientTransaction& transaction = context.client.modes.transaction;
  if (transaction.open) return context.reply.Error("ERR WATCH inside MULTI is not allowed");
  WatchedKeys added;
  size_t bytes = transaction.watched_bytes;
  for (const std::string_view key : arguments.subspan(1)) {
    const WatchedKey::Name name(context.space(), key);
    // As it was when it was watched first.
    if (transaction.watched.contains(name) || added.contains(name)) continue;
    const absl::StatusOr<ReadResult> read = LookUpUnexpired(context, key);
    if (!read.ok()) return context.Fail(read.status());
    bytes += key.size() + kBytesPerWatchedKey;
    if (bytes > kMaxWatchedBytes) {
      return context.reply.Error(fmt::format(
          "ERR keys of more than {} bytes in all can not be watched", kMaxWatchedBytes));
    }
    added.insert({.space = context.space(),
                  .key = std::string(key),
                  .read_sequence = read->read_sequence,
                  .found = read->found,
                  .version = read->version});
  }
  transaction.watched.merge(added);
  transaction.watched_bytes = bytes;
  ShowTransaction(&context.client);
  context.reply.Ok();
}

void HandleUnwatch(CommandContext& context, Arguments) {
  ClientTransaction& transaction = context.client.modes.transaction;
  transaction.watched.clear();
  transaction.watched_ranges.clear();
  transaction.watched_bytes = 0;
  ShowTransaction(&context.client);
  context.reply.Ok();
}

constexpr uint32_t kQuick = kTransactionCommand | kFastCommand;
constexpr Command kTransactionRows[] = {
    {.name = "discard",
     .arity = 1,
     .flags = kQuick | kInTransactionCommand | kLocalCommand,
     .handler = HandleDiscard,
     .group = "transactions",
     .summary = "Forgets the requests since MULTI, and the keys and ranges watched.",
     .complexity = "O(N) for N queued requests and watched keys",
     .redis = {.flags = "noscript loading stale allow_busy"}},
    {.name = "exec",
     .arity = 1,
     .flags = kTransactionCommand | kInTransactionCommand | kSlowCommand,
     .handler = HandleExec,
     .group = "transactions",
     .summary = "Executes the requests since MULTI as one step, unless a key or range watched was "
                "written.",
     .complexity = "what the queued requests take together",
     .redis = {.flags = "noscript loading stale skip_slowlog"}},
    {.name = "multi",
     .arity = 1,
     .flags = kQuick | kInTransactionCommand | kLocalCommand,
     .handler = HandleMulti,
     .group = "transactions",
     .summary = "Lets the requests that follow wait for EXEC.",
     .complexity = "O(1)",
     .redis = {.flags = "noscript loading stale allow_busy"}},
    {.name = "unwatch",
     .arity = 1,
     .flags = kQuick | kLocalCommand,
     .handler = HandleUnwatch,
     .group = "transactions",
     .summary = "Forgets the keys and ranges watched.",
     .complexity = "O(N) for N watched keys",
     .redis = {.flags = "noscript loading stale allow_busy"}},
    {.name = "watch",
     .arity = -2,
     .flags = kQuick | kInTransactionCommand,
     .keys = kAllKeys,
     .handler = HandleWatch,
     .group = "transactions",
     .summary = "Lets the next EXEC do nothing if one of the keys is written before it.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.flags = "noscript loading stale allow_busy", .key_flags = "RO"}},
};

}  // namespace

absl::Span<const Command> TransactionCommands() { return kTransactionRows; }

}  // namespace varve
