// Commands on keys as paths: TREE and DELPREFIX. CHILDREN stands with the other commands on ranges.
#include <memory>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/execution/key_update.h"
#include "server/execution/store_capability.h"
#include "server/past/past_read.h"
#include "server/requests/key_range.h"
#include "server/scans/tree_stream.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// Reads a number of `least` to `most`; answers an error and returns false when it is something
// else.
bool ParseNumber(CommandContext& context, std::string_view option, std::string_view text,
                 int64_t least, int64_t most, int64_t* number) {
  if (!ParseRespInteger(text, number)) {
    context.reply.Error("ERR value is not an integer or out of range");
    return false;
  }
  if (*number >= least && *number <= most) return true;
  context.reply.Error(least == INT64_MIN
                          ? fmt::format("ERR {} is a number up to {}", option, most)
                          : fmt::format("ERR {} is a number from {} to {}", option, least, most));
  return false;
}

// Reads [DELIM d] [DEPTH n] [LIMIT n] [WITHSIZES] in any order; answers an error and returns false
// when it is something else.
bool ParseTree(CommandContext& context, Arguments options, TreeRequest* request) {
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string_view option = options[i];
    if (EqualsIgnoreCase(option, "withsizes")) {
      request->sizes = true;
    } else if (i + 1 == options.size()) {
      ReplySyntaxError(context);
      return false;
    } else if (EqualsIgnoreCase(option, "delim")) {
      request->delimiter = options[++i];
      if (request->delimiter.empty() || request->delimiter.size() > kLongestDelimiter) {
        context.reply.Error("ERR a delimiter has 1 to 16 bytes");
        return false;
      }
    } else if (EqualsIgnoreCase(option, "depth")) {
      int64_t depth = 0;
      if (!ParseNumber(context, "DEPTH", options[++i], 1, TreeRequest::kMaxDepth, &depth))
        return false;
      request->depth = static_cast<size_t>(depth);
    } else if (EqualsIgnoreCase(option, "limit")) {
      if (!ParseNumber(context, "LIMIT", options[++i], INT64_MIN, TreeRequest::kMaxNames,
                       &request->limit))
        return false;
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

void HandleTree(CommandContext& context, Arguments arguments) {
  TreeRequest request{.prefix = arguments[1]};
  if (!ParseTree(context, arguments.subspan(2), &request)) return;
  context.Stream(std::make_unique<TreeStream>(
      SelectVisible(context, arguments, PrefixRange(arguments[1])), request));
}

void HandleDelPrefix(CommandContext& context, Arguments arguments) {
  if (!StoreMeets(context, StoreNeed::kConstantTimeRangeDelete)) return;
  const KeyRange range = PrefixRange(arguments[1]);
  WriteBatch& batch = ClearedBatch(context);
  batch.DeleteRange(range.lower, range.upper);
  if (context.Submit(&batch)) context.reply.Ok();
}

constexpr Command kRows[] = {
    {.name = "delprefix",
     .arity = 2,
     .flags = kWriteCommand,
     .handler = HandleDelPrefix,
     .group = "range",
     .summary = "Deletes the keys that begin with a prefix, in constant time.",
     .syntax = "prefix",
     .complexity = "O(1), whatever lies below the prefix"},
    {.name = "tree",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandleTree, 2>,
     .group = "range",
     .summary = "Shows the names below a prefix as a tree: each with the names in it.",
     .syntax = "prefix [DELIM d] [DEPTH n] [LIMIT n] [WITHSIZES] [AT version|AT TIME ms|AT AGO "
               "seconds]",
     .complexity = "O(N * log(S)) for S keys in the database and N names shown, whatever lies "
                   "below the deepest ones"},
};

}  // namespace

absl::Span<const Command> PathCommands() { return kRows; }

}  // namespace varve
