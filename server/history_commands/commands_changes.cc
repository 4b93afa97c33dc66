// CHANGES: every commit in order, as replies and as a stream of pushes.
#include <memory>
#include <utility>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/request_checks.h"
#include "server/feed/change_push.h"
#include "server/feed/change_stream.h"

namespace varve {
namespace {

// Returns whether a reader may begin there; if not, the error was answered.
bool MayBegin(CommandContext& context, const ChangeStart& start) {
  const absl::Status status =
      context.server.store->NewChangeIterator(start.since, start.filter).status();
  if (!status.ok()) context.Fail(ExplainNoChanges(*context.server.store, status));
  return status.ok();
}

// CHANGES STREAM SINCE version|FIRST | FROM SNAPSHOT [option ...]
void HandleStream(CommandContext& context, Arguments arguments) {
  const absl::StatusOr<ChangeRequest> request =
      ParseChangeRequest(arguments.subspan(2), /*is_stream=*/true);
  if (!request.ok()) return context.Fail(request.status());
  if (context.in_transaction())
    return context.reply.Error("ERR CHANGES STREAM is not allowed in transactions");
  if (context.client.protocol < 3)
    return context.reply.Error("ERR CHANGES STREAM sends pushes, which take RESP3: say HELLO 3");
  if (context.client.modes.stream != nullptr && !context.client.modes.stream->ended())
    return context.reply.Error("ERR this connection gets a stream already, which RESET ends");
  const bool from_snapshot = request->start == ChangeRequest::Start::kSnapshot;
  if (from_snapshot && request->all_spaces)
    return context.reply.Error("ERR FROM SNAPSHOT takes one namespace");
  ChangeStart start;
  if (!FindChangeStart(context, *request, &start)) return;
  if (!from_snapshot && !MayBegin(context, start)) return;
  context.client.modes.stream =
      std::make_shared<ChangePush>(context, arguments, std::move(start), *request);
  context.client.link.streams.store(true, std::memory_order_relaxed);
  context.reply.Ok();
}

// CHANGES NOW | SINCE version|FIRST [option ...] | STREAM ...
void HandleChanges(CommandContext& context, Arguments arguments) {
  if (EqualsIgnoreCase(arguments[1], "stream")) return HandleStream(context, arguments);
  const absl::StatusOr<ChangeRequest> request =
      ParseChangeRequest(arguments.subspan(1), /*is_stream=*/false);
  if (!request.ok()) return context.Fail(request.status());
  if (request->start == ChangeRequest::Start::kNow) {
    if (WriteChangesHead(context, std::nullopt)) context.reply.Array(0);
    return;
  }
  ChangeStart start;
  if (!FindChangeStart(context, *request, &start)) return;
  context.Stream(std::make_unique<CommitStream>(context, arguments, std::move(start), *request));
}

constexpr Command kChangesRows[] = {
    {.name = "changes",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand | kPresentCommand,
     .handler = HandleChanges,
     .group = "stream",
     .summary = "Answers the commits behind a version, in order, or sends them as they come.",
     .syntax =
         "NOW | [STREAM] SINCE version | STREAM FROM SNAPSHOT [PREFIX prefix | RANGE min max] "
         "[NAMESPACE name] [COUNT count] [BLOCK milliseconds] [KEYS] [PREV] [FULL]",
     .complexity = "O(n) of the changes behind the version that are looked at",
     .redis = {.flags = "noscript blocking", .categories = "@blocking"}},
};

}  // namespace

absl::Span<const Command> ChangeCommands() { return kChangesRows; }

}  // namespace varve
