// Commands on ranges of keys. Those that take keys as paths stand in server/history_commands.
#include <optional>
#include <string>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/key_update.h"
#include "server/past/past_read.h"
#include "server/requests/key_range.h"
#include "server/requests/past_point.h"
#include "server/scans/range_removal.h"
#include "server/scans/range_stream.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr std::string_view kBadVersion = "ERR SINCE takes a version, which is an integer";

// Reads [REV] [LIMIT offset count] [KEYS] [WITHEXPIRY] [WITHVERSION] [WITHMETA] [SINCE version] in
// any order; answers an error and returns false when it is something else.
bool ParseRangeOptions(CommandContext& context, Arguments arguments, RangeOptions* options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (EqualsIgnoreCase(arguments[i], "rev")) {
      options->reverse = true;
    } else if (EqualsIgnoreCase(arguments[i], "keys")) {
      options->keys_only = true;
    } else if (EqualsIgnoreCase(arguments[i], "withexpiry")) {
      options->with_expiry = true;
    } else if (EqualsIgnoreCase(arguments[i], "withversion")) {
      options->with_version = true;
    } else if (EqualsIgnoreCase(arguments[i], "withmeta")) {
      options->with_metadata = true;
    } else if (EqualsIgnoreCase(arguments[i], "since") && i + 1 < arguments.size()) {
      const std::optional<uint64_t> version = ParseCount(arguments[++i]);
      if (!version) {
        context.reply.Error(kBadVersion);
        return false;
      }
      options->newer_than = *version;
    } else if (EqualsIgnoreCase(arguments[i], "limit") && i + 2 < arguments.size()) {
      if (!ParseRespInteger(arguments[i + 1], &options->offset) ||
          !ParseRespInteger(arguments[i + 2], &options->limit)) {
        context.reply.Error("ERR value is not an integer or out of range");
        return false;
      }
      i += 2;
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

void HandleRange(CommandContext& context, Arguments arguments) {
  RangeOptions options;
  if (!ParseRangeOptions(context, arguments.subspan(3), &options)) return;
  // As in Redis' ZRANGE ... BYLEX REV, the larger bound comes first when the order is reversed.
  std::optional<KeyRange> range = options.reverse ? ParseKeyRange(arguments[2], arguments[1])
                                                  : ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error(kBadBound);
  context.Stream(
      std::make_unique<RangeStream>(SelectVisible(context, arguments, *std::move(range)), options));
}

void HandlePrefix(CommandContext& context, Arguments arguments) {
  RangeOptions options;
  if (!ParseRangeOptions(context, arguments.subspan(2), &options)) return;
  context.Stream(std::make_unique<RangeStream>(
      SelectVisible(context, arguments, PrefixRange(arguments[1])), options));
}

void HandleCount(CommandContext& context, Arguments arguments) {
  std::optional<KeyRange> range = ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error(kBadBound);
  context.Stream(
      std::make_unique<CountStream>(SelectVisible(context, arguments, *std::move(range))));
}

void HandleDbSize(CommandContext& context, Arguments arguments) {
  const absl::StatusOr<CountResult> count =
      context.store.Count(NoWaitReadOptions(context.space()), "", "");
  if (!count.ok()) return context.Fail(count.status());
  context.DependOn(count->durable_after);
  context.reply.Integer(static_cast<int64_t>(count->keys));
}

void HandleDelRange(CommandContext& context, Arguments arguments) {
  const std::optional<KeyRange> range = ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error(kBadBound);
  DeleteRange(context, *range);
}

constexpr Command kRows[] = {
    {.name = "count",
     .arity = 3,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandleCount, 3>,
     .group = "range",
     .summary = "Counts the keys between two bounds.",
     .syntax = "min max [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) for S keys in the database and N keys in the range"},
    {.name = "dbsize",
     .arity = 1,
     .flags = kReadCommand | kSlowCommand,
     .handler = HandleDbSize,
     .group = "server",
     .summary = "Counts all keys.",
     .complexity = "O(1), and O(W) for W writes since the last count that no merge has counted yet",
     .redis = {.tips = "request_policy:all_shards response_policy:agg_sum",
               .categories = "@keyspace"}},
    {.name = "delrange",
     .arity = 3,
     .flags = kWriteCommand,
     .handler = HandleDelRange,
     .group = "range",
     .summary = "Deletes the keys between two bounds in constant time.",
     .syntax = "min max",
     .complexity = "O(1), whatever the range holds"},
    {.name = "prefix",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandlePrefix, 2>,
     .group = "range",
     .summary = "Lists the keys that begin with a prefix, in order, with their values.",
     .syntax = "prefix [REV] [LIMIT offset count] [KEYS] [WITHEXPIRY] [WITHVERSION] [WITHMETA] "
               "[SINCE version] [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) for S keys in the database and N keys listed or skipped; SINCE "
                   "skips segments that hold nothing newer"},
    {.name = "range",
     .arity = -3,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandleRange, 3>,
     .group = "range",
     .summary = "Lists the keys between two bounds, in order, with their values.",
     .syntax = "min max [REV] [LIMIT offset count] [KEYS] [WITHEXPIRY] [WITHVERSION] [WITHMETA] "
               "[SINCE version] [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) for S keys in the database and N keys listed or skipped; SINCE "
                   "skips segments that hold nothing newer"},
};

}  // namespace

absl::Span<const Command> RangeCommands() { return kRows; }

}  // namespace varve
