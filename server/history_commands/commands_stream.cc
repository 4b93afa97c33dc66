// XREAD, XRANGE, XREVRANGE, XLEN and XINFO: the change feed as a stream of Redis.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/request_checks.h"
#include "server/feed/entry_stream.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// Reads [COUNT n] [BLOCK ms] STREAMS key ... id ... True: the changes are among the keys.
absl::StatusOr<bool> ParseXread(Arguments words, ChangeRequest* request) {
  while (words.size() > 1 && !EqualsIgnoreCase(words[0], "streams")) {
    if (EqualsIgnoreCase(words[0], "count")) {
      // As in Redis, 0 stands for any number.
      if (words[1] != "0") VARVE_RETURN_IF_ERROR(ParseChangeCount(words[1], &request->count));
    } else if (EqualsIgnoreCase(words[0], "block")) {
      VARVE_RETURN_IF_ERROR(ParseChangeBlock(words[1], &request->block));
    } else {
      return absl::InvalidArgumentError("syntax error");
    }
    words.remove_prefix(2);
  }
  if (words.size() < 3 || words.size() % 2 == 0) {
    return absl::InvalidArgumentError(
        "Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.");
  }
  const size_t streams = words.size() / 2;
  bool found = false;
  for (size_t i = 1; i <= streams; ++i) {
    ChangeRequest parsed;
    VARVE_RETURN_IF_ERROR(ParseEntryId(words[i + streams], &parsed));
    if (found || words[i] != kChangesKey) continue;
    request->start = parsed.start;
    request->since = parsed.since;
    found = true;
  }
  return found;
}

void HandleXread(CommandContext& context, Arguments arguments) {
  ChangeRequest request;
  const absl::StatusOr<bool> found = ParseXread(arguments.subspan(1), &request);
  if (!found.ok()) return context.Fail(found.status());
  if (!*found) return context.reply.NullArray();  // no key holds a stream
  ChangeStart start;
  if (!FindChangeStart(context, request, &start)) return;
  context.Stream(std::make_unique<EntryStream>(context, arguments, std::move(start), request,
                                               EntryStream::Form::kStreams));
}

// The newest version is that of the moment at which the request began, so that no reply chases
// writers. Nothing: the error was answered.
std::optional<ChangePositions> FindPositions(CommandContext& context) {
  const absl::StatusOr<ChangePositions> positions = context.server.store->GetChangePositions();
  if (positions.ok()) return *positions;
  context.Fail(ExplainNoChanges(*context.server.store, positions.status()));
  return std::nullopt;
}

// Reads [COUNT n] behind the interval. As in Redis, numbers below 1 stand for no entries at all.
// False: the error was answered.
bool ParseRangeCount(CommandContext& context, Arguments words, ChangeRequest* request) {
  for (; !words.empty(); words.remove_prefix(2)) {
    int64_t count = 0;
    if (words.size() < 2 || !EqualsIgnoreCase(words[0], "count")) {
      ReplySyntaxError(context);
      return false;
    }
    if (!ParseRespInteger(words[1], &count)) {
      context.reply.Error(kNoInteger);
      return false;
    }
    request->count = static_cast<size_t>(std::max<int64_t>(count, 0));
  }
  return true;
}

void AnswerRange(CommandContext& context, Arguments arguments, bool newest_first) {
  const absl::StatusOr<EntryInterval> interval =
      newest_first ? ParseEntryInterval(arguments[3], arguments[2])
                   : ParseEntryInterval(arguments[2], arguments[3]);
  if (!interval.ok()) return context.Fail(interval.status());
  ChangeRequest request;
  if (!ParseRangeCount(context, arguments.subspan(4), &request)) return;
  if (request.count == size_t{0}) return context.reply.NullArray();
  if (arguments[1] != kChangesKey) return context.reply.Array(0);  // no key holds a stream
  const std::optional<ChangePositions> positions = FindPositions(context);
  if (!positions) return;
  using Start = ChangeRequest::Start;
  request.start = interval->since == kNoSequence ? Start::kFirst : Start::kVersion;
  request.since = interval->since;
  ChangeStart start;
  if (!FindChangeStart(context, request, &start)) return;
  start.last = std::min(interval->last, positions->last);
  if (start.since >= start.last) return context.reply.Array(0);
  if (newest_first) {
    context.Stream(std::make_unique<NewestEntryStream>(context, arguments, std::move(start),
                                                       positions->first, request));
  } else {
    context.Stream(std::make_unique<EntryStream>(context, arguments, std::move(start), request,
                                                 EntryStream::Form::kEntries));
  }
}

void HandleXrange(CommandContext& context, Arguments arguments) {
  AnswerRange(context, arguments, /*newest_first=*/false);
}

void HandleXrevrange(CommandContext& context, Arguments arguments) {
  AnswerRange(context, arguments, /*newest_first=*/true);
}

void HandleXlen(CommandContext& context, Arguments arguments) {
  if (arguments[1] != kChangesKey) return context.reply.Integer(0);
  if (const std::optional<ChangePositions> positions = FindPositions(context))
    context.reply.Integer(AsInteger(positions->count()));
}

void HandleXinfo(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  if (arguments[2] != kChangesKey) return context.reply.Error("ERR no such key");
  if (subcommand->word() == "groups") return context.reply.Array(0);
  ChangeRequest request{.start = ChangeRequest::Start::kFirst, .count = 1};
  ChangeStart start;
  const std::optional<ChangePositions> positions = FindPositions(context);
  if (!positions || !FindChangeStart(context, request, &start)) return;
  start.last = positions->last;
  context.Stream(
      std::make_unique<EntryInfoStream>(context, arguments, std::move(start), *positions, request));
}

constexpr Command kStreamRows[] = {
    {.name = "xinfo",
     .arity = -2,
     .flags = kContainerCommand | kSlowCommand | kPresentCommand,
     .handler = HandleXinfo,
     .group = "stream",
     .summary = "Shows what the stream varve:changes is like.",
     .syntax = "GROUPS | STREAM | HELP"},
    {.name = "xlen",
     .arity = 2,
     .flags = kReadCommand | kFastCommand | kPresentCommand,
     .handler = HandleXlen,
     .group = "stream",
     .summary = "Answers how many versions the stream varve:changes retains.",
     .syntax = "key",
     .complexity = "O(1)"},
    {.name = "xrange",
     .arity = -4,
     .flags = kReadCommand | kSlowCommand | kPresentCommand,
     .handler = HandleXrange,
     .group = "stream",
     .summary = "Answers the entries of the stream varve:changes between two ids, oldest first.",
     .syntax = "key start end [COUNT count]",
     .complexity = "O(n) of the changes that are looked at"},
    {.name = "xread",
     .arity = -4,
     .flags = kReadCommand | kSlowCommand | kPresentCommand,
     .handler = HandleXread,
     .group = "stream",
     .summary = "Answers the changes behind a version as entries of the stream varve:changes.",
     .syntax = "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
     .complexity = "O(n) of the changes behind the version that are looked at",
     .redis = {.flags = "blocking", .categories = "@blocking"}},
    {.name = "xrevrange",
     .arity = -4,
     .flags = kReadCommand | kSlowCommand | kPresentCommand,
     .handler = HandleXrevrange,
     .group = "stream",
     .summary = "Answers the entries of the stream varve:changes between two ids, newest first.",
     .syntax = "key end start [COUNT count]",
     .complexity = "O(n) of the changes that are looked at"},
};

}  // namespace

absl::Span<const Command> StreamCommands() { return kStreamRows; }

}  // namespace varve
