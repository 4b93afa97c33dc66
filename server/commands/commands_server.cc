// Commands that concern the server as a whole.
#include <chrono>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/commands/server_info.h"
#include "server/execution/value_condition.h"
#include "server/requests/key_range.h"
#include "server/requests/past_point.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr std::string_view kBadInstant =
    "ERR the time is not a number of milliseconds since the epoch";

void HandleInfo(CommandContext& context, Arguments arguments) {
  SequenceNumber durable_after = kNoSequence;
  context.reply.Verbatim(
      ServerInfo(context.server, context.store, arguments.subspan(1), &durable_after));
  context.DependOn(durable_after);
}

void HandleCompact(CommandContext& context, Arguments arguments) {
  if (arguments.size() != 1 && arguments.size() != 3) return ReplyWrongArity(context, "compact");
  std::optional<KeyRange> range = KeyRange();
  if (arguments.size() == 3) range = ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error(kBadBound);
  if (!range->empty) {
    const absl::Status status =
        context.server.store->Compact(range->lower, range->upper, context.space());
    if (!status.ok()) return context.Fail(status);
  }
  context.reply.Ok();
}

void HandleShutdown(CommandContext& context, Arguments arguments) {
  bool save = false;
  bool no_save = false;
  bool force = false;
  bool abort = false;
  for (const std::string_view option : arguments.subspan(1)) {
    if (EqualsIgnoreCase(option, "save")) {
      save = true;
    } else if (EqualsIgnoreCase(option, "nosave")) {
      no_save = true;
    } else if (EqualsIgnoreCase(option, "force")) {
      force = true;
    } else if (EqualsIgnoreCase(option, "abort")) {
      abort = true;
      // There are no replicas to wait for, so it always is now.
    } else if (!EqualsIgnoreCase(option, "now")) {
      return ReplySyntaxError(context);
    }
  }
  if ((abort && arguments.size() > 2) || (save && no_save)) return ReplySyntaxError(context);
  // One that began reads no more requests.
  if (abort) return context.reply.Error("ERR No shutdown in progress.");
  if (!context.server.shut_down)
    return context.reply.Error("ERR this server is stopped by the program that it is a part of");
  if (!force && !no_save && !context.server.store->log_status().ok()) {
    return context.reply.Error("ERR Errors trying to SHUTDOWN. Check logs.");
  }
  context.server.shut_down();
  context.CloseWithoutReply();
}

// Replies with a version or an instant. Replies null where the store does not know it: a client
// that asks about an old version has made no mistake.
void ReplyKnown(CommandContext& context, const absl::StatusOr<uint64_t>& number) {
  if (absl::IsNotFound(number.status())) return context.reply.Null();
  if (!number.ok()) return context.Fail(number.status());
  context.reply.Integer(static_cast<int64_t>(*number));
}

void HandleVersionAtTime(CommandContext& context, Arguments arguments) {
  if (!EqualsIgnoreCase(arguments[1], "at") || !EqualsIgnoreCase(arguments[2], "time"))
    return ReplySyntaxError(context);
  const std::optional<uint64_t> instant_ms = ParseCount(arguments[3]);
  if (!instant_ms) return context.reply.Error(kBadInstant);
  ReplyKnown(context, context.server.store->VersionAt(*instant_ms));
}

void ReplyTimeOf(CommandContext& context, Arguments arguments) {
  // As Redis, which takes no arguments.
  if (arguments.size() != 3 || !EqualsIgnoreCase(arguments[1], "of"))
    return ReplyWrongArity(context, "time");
  const std::optional<uint64_t> version = ParseCount(arguments[2]);
  if (!version) return context.reply.Error(kBadVersion);
  ReplyKnown(context, context.server.store->InstantOf(*version));
}

void HandleTime(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 1) return ReplyTimeOf(context, arguments);
  const int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  context.reply.Array(2);
  context.reply.Bulk(fmt::to_string(micros / 1'000'000));
  context.reply.Bulk(fmt::to_string(micros % 1'000'000));
}

constexpr Command kServerRows[] = {
    {.name = "compact",
     .arity = -1,
     .flags = kAdminCommand | kMaintenanceCommand | kNotInTransactionCommand,
     .handler = HandleCompact,
     .group = "server",
     .summary = "Merges a range of keys down to one sorted run; answers when done.",
     .syntax = "[min max]",
     .complexity = "O(N) for N bytes of segments that the range overlaps, in the background",
     .redis = {.flags = "no_multi"}},
    {.name = "info",
     .arity = -1,
     .flags = kSlowCommand,
     .handler = HandleInfo,
     .group = "server",
     .summary = "Shows figures of the server and the engine.",
     .syntax = "[section ...]",
     .complexity = "O(N) for N namespaces",
     .redis = {.flags = "loading stale",
               .tips = "nondeterministic_output request_policy:all_shards response_policy:special",
               .categories = "@dangerous"}},
    {.name = "shutdown",
     .arity = -1,
     .flags = kAdminCommand | kNotInTransactionCommand,
     .handler = HandleShutdown,
     .group = "server",
     .summary = "Stops the server as SIGTERM does.",
     .syntax = "[NOSAVE | SAVE] [NOW] [FORCE] | ABORT",
     .complexity = "O(1): one sync of the log",
     .redis = {.flags = "noscript loading stale no_multi allow_busy"}},
    {.name = "time",
     .arity = -1,
     .flags = kFastCommand,
     .handler = HandleTime,
     .group = "server",
     .summary = "Tells the time in seconds, and microseconds of this second; or when a version was "
                "written, in milliseconds since the epoch.",
     .syntax = "[OF version]",
     .complexity = "O(1), or O(log N) for N seconds that are remembered",
     .redis = {.flags = "loading stale", .tips = "nondeterministic_output"}},
    {.name = "version",
     .arity = 4,
     .flags = kFastCommand,
     .handler = HandleVersionAtTime,
     .group = "server",
     .summary = "Answers the newest version that was written at a time, in milliseconds since the "
                "epoch, or before.",
     .syntax = "AT TIME milliseconds",
     .complexity = "O(log N) for N seconds that are remembered"},
};

}  // namespace

absl::Span<const Command> ServerCommands() { return kServerRows; }

}  // namespace varve
