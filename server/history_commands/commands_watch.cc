// WATCHPREFIX and WATCHRANGE: the next EXEC does nothing if a range of keys has changed.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/clients/client_modes.h"
#include "server/commands/command_groups.h"
#include "server/requests/key_range.h"

namespace varve {
namespace {

void Watch(CommandContext& context, std::string_view name, KeyRange range) {
  ClientTransaction& transaction = context.client.modes.transaction;
  if (transaction.open)
    return context.reply.Error(fmt::format("ERR {} inside MULTI is not allowed", name));
  // As it was when it was watched first.
  const bool is_watched =
      std::any_of(transaction.watched_ranges.begin(), transaction.watched_ranges.end(),
                  [&](const WatchedRange& watched) {
                    return watched.space == context.space() && watched.lower == range.lower &&
                           watched.upper == range.upper;
                  });
  if (range.empty || is_watched) return context.reply.Ok();
  const size_t bytes =
      transaction.watched_bytes + range.lower.size() + range.upper.size() + kBytesPerWatchedRange;
  if (transaction.watched_ranges.size() == kMaxWatchedRanges || bytes > kMaxWatchedBytes) {
    return context.reply.Error(
        fmt::format("ERR more than {} ranges, or {} bytes of keys and ranges, can not be watched",
                    kMaxWatchedRanges, kMaxWatchedBytes));
  }
  absl::StatusOr<std::unique_ptr<RangeWatch>> watch =
      context.server.store->WatchRange(context.space(), range.lower, range.upper);
  if (!watch.ok()) return context.Fail(watch.status());
  transaction.watched_ranges.push_back(
      {context.space(), std::move(range.lower), std::move(range.upper), *std::move(watch)});
  transaction.watched_bytes = bytes;
  ShowTransaction(&context.client);
  context.reply.Ok();
}

void HandleWatchPrefix(CommandContext& context, Arguments arguments) {
  Watch(context, "WATCHPREFIX", PrefixRange(arguments[1]));
}

void HandleWatchRange(CommandContext& context, Arguments arguments) {
  std::optional<KeyRange> range = ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error(kBadBound);
  Watch(context, "WATCHRANGE", *std::move(range));
}

// A watch first removes what has expired, which may take long.
constexpr uint32_t kWatchFlags = kTransactionCommand | kInTransactionCommand | kSlowCommand;
constexpr Command kWatchRows[] = {
    {.name = "watchprefix",
     .arity = 2,
     .flags = kWatchFlags,
     .handler = HandleWatchPrefix,
     .group = "transactions",
     .summary = "Lets the next EXEC do nothing if a key with the prefix, old or new, is written, "
                "deleted or expires before it.",
     .syntax = "prefix",
     .complexity = "O(1) for the watch; O(W) for EXEC and W writes since then"},
    {.name = "watchrange",
     .arity = 3,
     .flags = kWatchFlags,
     .handler = HandleWatchRange,
     .group = "transactions",
     .summary = "Lets the next EXEC do nothing if a key between two bounds, old or new, is "
                "written, deleted or expires before it.",
     .syntax = "min max",
     .complexity = "O(1) for the watch; O(W) for EXEC and W writes since then"},
};

}  // namespace

absl::Span<const Command> WatchCommands() { return kWatchRows; }

}  // namespace varve
