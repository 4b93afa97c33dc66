// Commands that name databases, of which there is one: 0.
#include <cstdint>
#include <optional>

#include "server/command_groups.h"
#include "server/command_table.h"
#include "server/database_index.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

void HandleMove(CommandContext& context, Arguments arguments) {
  const std::optional<int32_t> database = ParseDatabaseIndex(context, arguments[2]);
  if (!database) return;
  if (*database != 0) return context.reply.Error("ERR DB index is out of range");
  context.reply.Error("ERR source and destination objects are the same");
}

void HandleSelect(CommandContext& context, Arguments arguments) {
  const std::optional<int32_t> index = ParseDatabaseIndex(context, arguments[1]);
  if (!index) return;
  if (*index != 0) return context.reply.Error("ERR DB index is out of range");
  context.reply.Ok();
}

void HandleSwapDb(CommandContext& context, Arguments arguments) {
  int64_t first = 0;
  int64_t second = 0;
  if (!ParseRespInteger(arguments[1], &first) || first != static_cast<int32_t>(first))
    return context.reply.Error("ERR invalid first DB index");
  if (!ParseRespInteger(arguments[2], &second) || second != static_cast<int32_t>(second))
    return context.reply.Error("ERR invalid second DB index");
  if (first != 0 || second != 0) return context.reply.Error("ERR DB index is out of range");
  context.reply.Ok();
}

}  // namespace

absl::Span<const Command> DatabaseCommands() {
  static constexpr Command kRows[] = {
      {"move", 3, kWriteCommand | kFastCommand, 1, 1, 1, CommandKind::kOther, HandleMove, "generic",
       "Answers an error: there is one database.", "key db"},
      {"select", 2, kConnectionCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleSelect, "connection",
       "Accepts database 0, the only one.", "index"},
      {"swapdb", 3, kWriteCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleSwapDb, "server",
       "Accepts 0 and 0, as there is one database.", "index1 index2"},
  };
  return kRows;
}

}  // namespace varve
