// Commands that concern the server as a whole.
#include <algorithm>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_table.h"
#include "server/key_range.h"
#include "server/server_info.h"

namespace varve {
namespace {

void HandleInfo(CommandContext& context, Arguments arguments) {
  SequenceNumber gate = kNoSequence;
  context.reply.Verbatim(ServerInfo(context.server, arguments.subspan(1), &gate));
  context.DependOn(gate);
}

void HandleFlushAll(CommandContext& context, Arguments arguments) {
  const bool takes =
      arguments.size() == 1 ||
      (arguments.size() == 2 && (EqualsIgnoreCase(arguments[1], "async") || EqualsIgnoreCase(arguments[1], "sync")));
  if (!takes) return ReplySyntaxError(context);
  WriteBatch batch;
  batch.ClearNamespace();
  if (context.Submit(&batch)) context.reply.Ok();
}

void HandleCompact(CommandContext& context, Arguments arguments) {
  if (arguments.size() != 1 && arguments.size() != 3) return ReplyWrongArity(context, "compact");
  std::optional<KeyRange> range = KeyRange();
  if (arguments.size() == 3) range = ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return context.reply.Error("ERR min or max not valid string range item");
  if (!range->empty) {
    const absl::Status status = context.store.Compact(range->lower, range->upper);
    if (!status.ok()) return context.Fail(status);
  }
  context.reply.Ok();
}

}  // namespace

absl::Span<const Command> ServerCommands() {
  static constexpr Command kRows[] = {
      {"compact", -1, kAdminCommand | kMaintenanceCommand, 0, 0, 0, CommandKind::kOther, HandleCompact, "server",
       "Merges a range of keys down to one sorted run; answers when done.", "[min max]"},
      {"flushall", -1, kWriteCommand, 0, 0, 0, CommandKind::kOther, HandleFlushAll, "server",
       "Deletes all keys in constant time.", "[ASYNC | SYNC]"},
      {"flushdb", -1, kWriteCommand, 0, 0, 0, CommandKind::kOther, HandleFlushAll, "server",
       "The same as FLUSHALL: there is one database.", "[ASYNC | SYNC]"},
      {"info", -1, kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleInfo, "server",
       "Shows figures of the server and the engine.", "[section ...]"},
  };
  return kRows;
}

}  // namespace varve
