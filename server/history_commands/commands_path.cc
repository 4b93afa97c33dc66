// Commands on keys as paths: CHILDREN, TREE and DELPREFIX.
#include <limits>
#include <memory>

#include "absl/functional/function_ref.h"
#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/execution/key_update.h"
#include "server/past/past_read.h"
#include "server/requests/key_range.h"
#include "server/scans/children_stream.h"
#include "server/scans/range_removal.h"
#include "server/scans/tree_stream.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr int64_t kNoMost = std::numeric_limits<int64_t>::max();

// Takes the option that the words begin with. Returns how many words it has; 0 if the command has
// no such option.
using TakeOption = absl::FunctionRef<absl::StatusOr<size_t>(Arguments words)>;

absl::StatusOr<int64_t> ParseInteger(std::string_view text) {
  int64_t number = 0;
  if (ParseRespInteger(text, &number)) return number;
  return absl::InvalidArgumentError("value is not an integer or out of range");
}

absl::Status ParseDelimiter(std::string_view text, std::string_view* delimiter) {
  if (text.empty() || text.size() > kLongestDelimiter) {
    return absl::InvalidArgumentError(
        fmt::format("a delimiter has 1 to {} bytes", kLongestDelimiter));
  }
  *delimiter = text;
  return absl::OkStatus();
}

absl::Status ParseLimit(std::string_view text, int64_t most, int64_t* limit) {
  VARVE_ASSIGN_OR_RETURN(*limit, ParseInteger(text));
  if (*limit <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("LIMIT is a number up to {}", most));
}

// Reads, in any order, [DELIM d] and [LIMIT n] into `request`, and what `take_other` takes.
template <typename Request>
absl::Status ParseOptions(Arguments words, int64_t most_names, Request* request,
                          TakeOption take_other) {
  while (!words.empty()) {
    size_t taken = 2;
    if (words.size() > 1 && EqualsIgnoreCase(words[0], "delim")) {
      VARVE_RETURN_IF_ERROR(ParseDelimiter(words[1], &request->delimiter));
    } else if (words.size() > 1 && EqualsIgnoreCase(words[0], "limit")) {
      VARVE_RETURN_IF_ERROR(ParseLimit(words[1], most_names, &request->limit));
    } else {
      VARVE_ASSIGN_OR_RETURN(taken, take_other(words));
      if (taken == 0) return absl::InvalidArgumentError("syntax error");
    }
    words.remove_prefix(taken);
  }
  return absl::OkStatus();
}

// --- CHILDREN ------------------------------------------------------------------------------------

// Takes [AFTER name], [REV] or [WITHCOUNTS|WITHSIZES].
size_t TakeChildrenOption(Arguments words, ChildrenRequest* request) {
  using Figures = ChildrenRequest::Figures;
  if (words.size() > 1 && EqualsIgnoreCase(words[0], "after")) {
    request->after = words[1];
    return 2;
  }
  if (EqualsIgnoreCase(words[0], "rev")) {
    request->reverse = true;
    return 1;
  }
  const bool counts = EqualsIgnoreCase(words[0], "withcounts");
  if (!counts && !EqualsIgnoreCase(words[0], "withsizes")) return 0;
  const Figures figures = counts ? Figures::kCounts : Figures::kSizes;
  if (request->figures != Figures::kNone && request->figures != figures) return 0;
  request->figures = figures;
  return 1;
}

void HandleChildren(CommandContext& context, Arguments arguments) {
  ChildrenRequest request{.prefix = arguments[1]};
  const absl::Status parsed =
      ParseOptions(arguments.subspan(2), kNoMost, &request,
                   [&](Arguments words) { return TakeChildrenOption(words, &request); });
  if (!parsed.ok()) return context.Fail(parsed);
  context.Stream(std::make_unique<ChildrenStream>(
      SelectVisible(context, arguments, request.Range()), request));
}

// --- TREE ----------------------------------------------------------------------------------------

// Takes [DEPTH n] or [WITHSIZES].
absl::StatusOr<size_t> TakeTreeOption(Arguments words, TreeRequest* request) {
  if (EqualsIgnoreCase(words[0], "withsizes")) {
    request->sizes = true;
    return size_t{1};
  }
  if (words.size() < 2 || !EqualsIgnoreCase(words[0], "depth")) return size_t{0};
  VARVE_ASSIGN_OR_RETURN(const int64_t depth, ParseInteger(words[1]));
  if (depth < 1 || depth > static_cast<int64_t>(TreeRequest::kMaxDepth)) {
    return absl::InvalidArgumentError(
        fmt::format("DEPTH is a number from 1 to {}", TreeRequest::kMaxDepth));
  }
  request->depth = static_cast<size_t>(depth);
  return size_t{2};
}

void HandleTree(CommandContext& context, Arguments arguments) {
  TreeRequest request{.prefix = arguments[1]};
  const absl::Status parsed =
      ParseOptions(arguments.subspan(2), TreeRequest::kMaxNames, &request,
                   [&](Arguments words) { return TakeTreeOption(words, &request); });
  if (!parsed.ok()) return context.Fail(parsed);
  context.Stream(std::make_unique<TreeStream>(
      SelectVisible(context, arguments, PrefixRange(arguments[1])), request));
}

// --- DELPREFIX -----------------------------------------------------------------------------------

void HandleDelPrefix(CommandContext& context, Arguments arguments) {
  DeleteRange(context, PrefixRange(arguments[1]));
}

constexpr Command kPathRows[] = {
    {.name = "children",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandleChildren, 2>,
     .group = "range",
     .summary = "Lists the names directly below a prefix, in order; one that ends in the delimiter "
                "is a directory.",
     .syntax = "prefix [DELIM d] [AFTER name] [LIMIT n] [REV] [WITHCOUNTS|WITHSIZES] [AT "
               "version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(C * log(S)) for S keys in the database and C names, whatever lies below "
                   "them; WITHCOUNTS reads what lies below"},
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

absl::Span<const Command> PathCommands() { return kPathRows; }

}  // namespace varve
