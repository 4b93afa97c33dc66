// Commands on values that are numbers.
#include <cmath>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/key_update.h"
#include "server/statistics/float_text.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// Adds to the integer value of `key`, 0 if it is missing, and answers the sum.
void Add(CommandContext& context, std::string_view key, int64_t increment) {
  int64_t number = 0;
  bool existed = false;
  std::string value;
  std::string_view refused;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    refused = {};
    number = 0;
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    existed = read->found;
    if (existed && !ParseRespInteger(value, &number)) {
      refused = kNoInteger;
    } else if (__builtin_add_overflow(number, increment, &number)) {
      refused = "ERR increment or decrement would overflow";
    } else {
      const fmt::format_int text(number);
      batch->Put(key, {text.data(), text.size()}, ExtrasOf(*read));
    }
    return absl::OkStatus();
  });
  if (!done) return;
  if (!refused.empty()) return context.reply.Error(refused);
  context.NotifyWritten("incrby", key, existed);
  context.reply.Integer(number);
}

void HandleIncr(CommandContext& context, Arguments arguments) { Add(context, arguments[1], 1); }

void HandleDecr(CommandContext& context, Arguments arguments) { Add(context, arguments[1], -1); }

void HandleIncrBy(CommandContext& context, Arguments arguments) {
  int64_t increment = 0;
  if (!ParseRespInteger(arguments[2], &increment)) return context.reply.Error(kNoInteger);
  Add(context, arguments[1], increment);
}

void HandleDecrBy(CommandContext& context, Arguments arguments) {
  int64_t decrement = 0;
  if (!ParseRespInteger(arguments[2], &decrement)) return context.reply.Error(kNoInteger);
  if (decrement == INT64_MIN) return context.reply.Error("ERR decrement would overflow");
  Add(context, arguments[1], -decrement);
}

void HandleIncrByFloat(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  const std::optional<long double> increment = ParseFloat(arguments[2]);
  if (!increment) return context.reply.Error("ERR value is not a valid float");
  bool existed = false;
  std::string value;
  std::string_view refused;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    refused = {};
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    existed = read->found;
    const std::optional<long double> number = existed ? ParseFloat(value) : 0;
    if (!number) {
      refused = "ERR value is not a valid float";
    } else if (!std::isfinite(*number + *increment)) {
      refused = "ERR increment would produce NaN or Infinity";
    } else {
      value = FloatText(*number + *increment);
      batch->Put(key, value, ExtrasOf(*read));
    }
    return absl::OkStatus();
  });
  if (!done) return;
  if (!refused.empty()) return context.reply.Error(refused);
  context.NotifyWritten("incrbyfloat", key, existed);
  context.reply.Bulk(value);
}

constexpr Command kNumberRows[] = {
    {.name = "decr",
     .arity = 2,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleDecr,
     .group = "string",
     .summary = "Takes one from the integer value of a key.",
     .syntax = "key",
     .complexity = "O(1)",
     .redis = {.flags = "denyoom"}},
    {.name = "decrby",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleDecrBy,
     .group = "string",
     .summary = "Takes a number from the integer value of a key.",
     .syntax = "key decrement",
     .complexity = "O(1)",
     .redis = {.flags = "denyoom"}},
    {.name = "incr",
     .arity = 2,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleIncr,
     .group = "string",
     .summary = "Adds one to the integer value of a key.",
     .syntax = "key",
     .complexity = "O(1)",
     .redis = {.flags = "denyoom"}},
    {.name = "incrby",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleIncrBy,
     .group = "string",
     .summary = "Adds a number to the integer value of a key.",
     .syntax = "key increment",
     .complexity = "O(1)",
     .redis = {.flags = "denyoom"}},
    {.name = "incrbyfloat",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleIncrByFloat,
     .group = "string",
     .summary = "Adds a number to the floating-point value of a key.",
     .syntax = "key increment",
     .complexity = "O(1)",
     .redis = {.flags = "denyoom"}},
};

}  // namespace

absl::Span<const Command> NumberCommands() { return kNumberRows; }

}  // namespace varve
