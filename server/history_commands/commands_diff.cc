// DIFF: the keys in which two namespaces differ, or two points of time of one.
#include <optional>
#include <utility>

#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/database_index.h"
#include "server/past/past_read.h"
#include "server/requests/key_range.h"
#include "server/requests/past_point.h"
#include "server/scans/difference_stream.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// Reads the name of a namespace and, if AT follows, a point of its past. Both states of the present
// share the snapshot `*present`, which the first of them takes. Nothing: the error was answered.
std::optional<ComparedState> ReadState(CommandContext& context, Arguments words,
                                       std::shared_ptr<const Snapshot>* present) {
  std::optional<PastPoint> point;
  if (words.size() > 1) {
    const absl::StatusOr<PastPoint> parsed = ParsePastPoint(words.subspan(2));
    if (!parsed.ok()) {
      context.Fail(parsed.status());
      return std::nullopt;
    }
    point = *parsed;
  }
  const std::optional<NamespaceDescription> space = FindNamespace(context, words[0]);
  if (!space) return std::nullopt;
  Store& store = *context.server.store;
  if (!point) {
    if (*present == nullptr) *present = store.GetSnapshot();
    return ComparedState{*present, space->id};
  }
  absl::StatusOr<std::shared_ptr<const Snapshot>> past = SnapshotOf(store, space->id, *point);
  if (past.ok()) return ComparedState{*std::move(past), space->id};
  context.Fail(past.status());
  return std::nullopt;
}

struct DiffOptions {
  KeyRange range;
  int64_t limit = -1;
};

// Reads [RANGE min max] [LIMIT n] in any order. Nothing: it is something else, and the error was
// answered.
std::optional<DiffOptions> ParseOptions(CommandContext& context, Arguments words) {
  DiffOptions options;
  while (!words.empty()) {
    if (EqualsIgnoreCase(words[0], "range") && words.size() > 2) {
      std::optional<KeyRange> range = ParseKeyRange(words[1], words[2]);
      if (!range) {
        context.reply.Error(kBadBound);
        return std::nullopt;
      }
      options.range = *std::move(range);
      words.remove_prefix(3);
    } else if (EqualsIgnoreCase(words[0], "limit") && words.size() > 1) {
      if (!ParseRespInteger(words[1], &options.limit)) {
        context.reply.Error(kNoInteger);
        return std::nullopt;
      }
      words.remove_prefix(2);
    } else {
      ReplySyntaxError(context);
      return std::nullopt;
    }
  }
  return options;
}

// DIFF a [AT point] b [AT point] [RANGE min max] [LIMIT n]
void HandleDiff(CommandContext& context, Arguments arguments) {
  if (&context.store != context.server.store)
    return context.reply.Error("ERR DIFF takes AT behind each of the two that it compares");
  Arguments rest = arguments.subspan(1);
  const Arguments first = rest.first(CountStateWords(rest));
  rest.remove_prefix(first.size());
  if (rest.empty()) return ReplyWrongArity(context, "diff");
  const Arguments second = rest.first(CountStateWords(rest));
  const std::optional<DiffOptions> options = ParseOptions(context, rest.subspan(second.size()));
  if (!options) return;
  // Both names first: a database that one of them makes is in the snapshot.
  std::shared_ptr<const Snapshot> present;
  if (!FindNamespace(context, second[0])) return;
  std::optional<ComparedState> a = ReadState(context, first, &present);
  if (!a) return;
  std::optional<ComparedState> b = ReadState(context, second, &present);
  if (!b) return;
  context.Stream(std::make_unique<DifferenceStream>(
      *std::move(a), *std::move(b), SelectVisible(context, arguments, options->range),
      options->limit));
}

constexpr Command kDiffRows[] = {
    {.name = "diff",
     .arity = -3,
     .flags = kReadCommand | kSlowCommand | kNotInTransactionCommand,
     .handler = HandleDiff,
     .group = "range",
     .summary = "Lists the keys in which two namespaces differ, or two points of time of one, in "
                "order.",
     .syntax = "a [AT version|TIME ms|AGO seconds] b [AT version|TIME ms|AGO seconds] [RANGE min "
               "max] [LIMIT n]",
     .complexity = "O(W * log(S)) for S keys and W that were written since one was cloned from the "
                   "other, or between the two points; O(S) for namespaces that share nothing"},
};

}  // namespace

absl::Span<const Command> DifferenceCommands() { return kDiffRows; }

}  // namespace varve
