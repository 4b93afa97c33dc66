// Commands on ranges of keys. Those that take keys as paths stand in server/history_commands.
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/key_update.h"
#include "server/past/past_read.h"
#include "server/requests/key_range.h"
#include "server/requests/past_point.h"
#include "server/requests/range_request.h"
#include "server/scans/range_removal.h"
#include "server/scans/range_stream.h"

namespace varve {
namespace {

using ParseRequest = std::string_view (*)(Arguments arguments, RangeRequest* request);

template <ParseRequest parse>
void HandleList(CommandContext& context, Arguments arguments) {
  RangeRequest request;
  const std::string_view error = parse(arguments, &request);
  if (!error.empty()) return context.reply.Error(error);
  context.Stream(std::make_unique<RangeStream>(
      SelectVisible(context, arguments, std::move(request.range)), request.options));
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

constexpr Command kRangeRows[] = {
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
     .kind = CommandKind::kPrefix,
     .handler = NowOrAt<HandleList<ParsePrefixRequest>, 2>,
     .group = "range",
     .summary = "Lists the keys that begin with a prefix, in order, with their values.",
     .syntax = "prefix [REV] [LIMIT offset count] [KEYS] [WITHEXPIRY] [WITHVERSION] [WITHMETA] "
               "[SINCE version] [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) for S keys in the database and N keys listed or skipped; SINCE "
                   "skips segments that hold nothing newer"},
    {.name = "range",
     .arity = -3,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .kind = CommandKind::kRange,
     .handler = NowOrAt<HandleList<ParseRangeRequest>, 3>,
     .group = "range",
     .summary = "Lists the keys between two bounds, in order, with their values.",
     .syntax = "min max [REV] [LIMIT offset count] [KEYS] [WITHEXPIRY] [WITHVERSION] [WITHMETA] "
               "[SINCE version] [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) for S keys in the database and N keys listed or skipped; SINCE "
                   "skips segments that hold nothing newer"},
};

}  // namespace

absl::Span<const Command> RangeCommands() { return kRangeRows; }

}  // namespace varve
