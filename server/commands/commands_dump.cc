// Commands that take a value out of one server and put it into another one, also Redis'
// (server/commands/dump_payload.h).
#include <optional>
#include <string>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/commands/dump_payload.h"
#include "server/execution/expiry_time.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

void HandleDump(CommandContext& context, Arguments arguments) {
  std::string value;
  const std::optional<ReadResult> read = ReadKey(context, arguments[1], &value);
  if (!read) return;
  read->found ? context.reply.Bulk(EncodeDumpPayload(value)) : context.reply.Null();
}

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;  // the time is an instant
};

// How long a key was idle and how often it is read are not kept, but have to make sense. Nothing:
// an error was answered.
std::optional<RestoreOptions> ParseRestoreOptions(CommandContext& context, Arguments options) {
  RestoreOptions parsed;
  bool idle_time = false;
  bool frequency = false;
  for (size_t i = 0; i < options.size(); ++i) {
    const bool argument_follows = i + 1 < options.size();
    const bool is_idle_time =
        EqualsIgnoreCase(options[i], "idletime") && argument_follows && !frequency;
    const bool is_frequency =
        EqualsIgnoreCase(options[i], "freq") && argument_follows && !idle_time;
    if (EqualsIgnoreCase(options[i], "replace")) {
      parsed.replace = true;
    } else if (EqualsIgnoreCase(options[i], "absttl")) {
      parsed.absolute = true;
    } else if (is_idle_time || is_frequency) {
      int64_t number = 0;
      std::string_view refused;
      if (!ParseRespInteger(options[++i], &number)) {
        refused = kNoInteger;
      } else if (is_idle_time && number < 0) {
        refused = "ERR Invalid IDLETIME value, must be >= 0";
      } else if (is_frequency && (number < 0 || number > 255)) {
        refused = "ERR Invalid FREQ value, must be >= 0 and <= 255";
      }
      if (!refused.empty()) {
        context.reply.Error(refused);
        return std::nullopt;
      }
      idle_time |= is_idle_time;
      frequency |= is_frequency;
    } else {
      ReplySyntaxError(context);
      return std::nullopt;
    }
  }
  return parsed;
}

// When the key is to expire; kUsualExpiry: it says nothing of it. Nothing, and why in `*refused`:
// the time can't be one.
std::optional<uint64_t> RestoredExpiry(const CommandContext& context, std::string_view time,
                                       bool absolute, std::string_view* refused) {
  int64_t instant = 0;
  if (!ParseRespInteger(time, &instant)) {
    *refused = kNoInteger;
    return std::nullopt;
  }
  if (instant == 0) return kUsualExpiry;
  const auto now = static_cast<int64_t>(context.store.NowMillis());
  if (instant < 0 || (!absolute && __builtin_add_overflow(instant, now, &instant))) {
    *refused = "ERR Invalid TTL value, must be >= 0";
    return std::nullopt;
  }
  return ExpiryMillis(instant);
}

void HandleRestore(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  const std::string_view payload = arguments[3];
  const std::optional<RestoreOptions> options = ParseRestoreOptions(context, arguments.subspan(4));
  if (!options) return;
  std::string_view refused;
  std::optional<std::string> value;
  const std::optional<uint64_t> expiry_ms =
      RestoredExpiry(context, arguments[2], options->absolute, &refused);
  if (expiry_ms && !IsDumpPayload(payload))
    refused = "ERR DUMP payload version or checksum are wrong";
  if (refused.empty()) {
    value = DecodeDumpPayload(payload, context.server.live.max_value_bytes);
    if (!value) refused = "ERR Bad data format";
  }
  if (value && context.NeedsPoolFor(value->size())) return;
  bool found = false;
  bool expired = false;
  std::string old;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &old, batch);
    if (!read.ok()) return read.status();
    found = read->found;
    if (!refused.empty() || (found && !options->replace)) return absl::OkStatus();
    expired = *expiry_ms != kUsualExpiry && context.GoesAtOnce(*expiry_ms);
    if (!expired) {
      batch->Put(key, *value, kSelectedNamespace, *expiry_ms);
    } else if (found) {
      batch->Delete(key);
    }
    return absl::OkStatus();
  });
  if (!done) return;
  // A key that is there is answered whatever the rest is, as in Redis.
  if (found && !options->replace)
    return context.reply.Error("BUSYKEY Target key name already exists.");
  if (!refused.empty()) return context.reply.Error(refused);
  if (!expired) {
    context.Notify(kNewEvent, "new", key);
    context.Notify(kGenericEvent, "restore", key);
  } else if (found) {
    context.Notify(kGenericEvent, "del", key);
  }
  context.reply.Ok();
}

constexpr Command kDumpRows[] = {
    {.name = "dump",
     .arity = 2,
     .flags = kReadCommand,
     .keys = kOneKey,
     .handler = HandleDump,
     .group = "generic",
     .summary = "Answers a value in the form that RESTORE takes, here and in Redis.",
     .syntax = "key",
     .complexity = "O(M) for M bytes of the value",
     .redis = {.tips = "nondeterministic_output"}},
    {.name = "restore",
     .arity = -4,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .handler = HandleRestore,
     .group = "generic",
     .summary = "Makes a key of what DUMP has answered, here or in Redis.",
     .syntax = "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
     .complexity = "O(M) for M bytes of the payload",
     .redis = {.flags = "denyoom", .categories = "@dangerous", .key_flags = "OW update"}},
};

}  // namespace

absl::Span<const Command> DumpCommands() { return kDumpRows; }

}  // namespace varve
