// Commands on the time that a key has left.
#include <algorithm>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/expiry_time.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"

namespace varve {
namespace {

// When EXPIRE may change what is there; a key without an expiry lives for ever.
struct ExpireCondition {
  bool none = false;     // NX
  bool some = false;     // XX
  bool greater = false;  // GT
  bool less = false;     // LT

  bool Holds(uint64_t old_ms, uint64_t new_ms) const {
    if (none && old_ms != 0) return false;
    if (some && old_ms == 0) return false;
    if (greater && (old_ms == 0 || new_ms <= old_ms)) return false;
    return !(less && old_ms != 0 && new_ms >= old_ms);
  }
};

// Nothing: an error was answered.
std::optional<ExpireCondition> ParseCondition(CommandContext& context, Arguments options) {
  ExpireCondition condition;
  for (const std::string_view option : options) {
    if (EqualsIgnoreCase(option, "nx")) {
      condition.none = true;
    } else if (EqualsIgnoreCase(option, "xx")) {
      condition.some = true;
    } else if (EqualsIgnoreCase(option, "gt")) {
      condition.greater = true;
    } else if (EqualsIgnoreCase(option, "lt")) {
      condition.less = true;
    } else {
      context.reply.Error(fmt::format("ERR Unsupported option {}", ShownInError(option)));
      return std::nullopt;
    }
  }
  if (condition.none && (condition.some || condition.greater || condition.less)) {
    context.reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible");
  } else if (condition.greater && condition.less) {
    context.reply.Error("ERR GT and LT options at the same time are not compatible");
  } else {
    return condition;
  }
  return std::nullopt;
}

void Expire(CommandContext& context, Arguments arguments, std::string_view name, ExpiryUnit unit) {
  const std::string_view key = arguments[1];
  const std::optional<ExpireCondition> condition = ParseCondition(context, arguments.subspan(3));
  if (!condition) return;
  const std::optional<int64_t> instant =
      ParseExpiry(context, name, arguments[2], unit, /*may_be_past=*/true);
  if (!instant) return;
  const uint64_t expiry_ms = ExpiryMillis(*instant);
  bool changed = false;
  bool deleted = false;
  std::string value;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    changed = read->found && condition->Holds(read->expiry_ms, expiry_ms);
    if (!changed) return absl::OkStatus();
    deleted = context.GoesAtOnce(expiry_ms);
    if (deleted) {
      batch->Delete(key);
    } else {
      batch->Put(key, value, ExtrasWithExpiry(*read, expiry_ms));
    }
    return absl::OkStatus();
  });
  if (!done) return;
  if (changed) context.Notify(kGenericEvent, deleted ? "del" : "expire", key);
  context.reply.Integer(changed ? 1 : 0);
}

void HandleExpire(CommandContext& context, Arguments arguments) {
  Expire(context, arguments, "expire", {.seconds = true, .from_now = true});
}
void HandlePExpire(CommandContext& context, Arguments arguments) {
  Expire(context, arguments, "pexpire", {.seconds = false, .from_now = true});
}
void HandleExpireAt(CommandContext& context, Arguments arguments) {
  Expire(context, arguments, "expireat", {.seconds = true, .from_now = false});
}
void HandlePExpireAt(CommandContext& context, Arguments arguments) {
  Expire(context, arguments, "pexpireat", {.seconds = false, .from_now = false});
}

// Answers milliseconds of the key's expiry: -2 for a missing key, -1 for one that stays.
void ReplyTime(CommandContext& context, std::string_view key, bool left, bool seconds) {
  const std::optional<ReadResult> read = PeekAtKey(context, key);
  if (!read) return;
  if (!read->found || read->expiry_ms == 0) return context.reply.Integer(read->found ? -1 : -2);
  auto millis = static_cast<int64_t>(read->expiry_ms);
  if (left) millis = std::max<int64_t>(0, millis - static_cast<int64_t>(context.store.NowMillis()));
  context.reply.Integer(seconds ? millis / 1000 + (millis % 1000 >= 500 ? 1 : 0) : millis);
}

void HandleTtl(CommandContext& context, Arguments arguments) {
  ReplyTime(context, arguments[1], true, true);
}
void HandlePTtl(CommandContext& context, Arguments arguments) {
  ReplyTime(context, arguments[1], true, false);
}
void HandleExpireTime(CommandContext& context, Arguments arguments) {
  ReplyTime(context, arguments[1], false, true);
}
void HandlePExpireTime(CommandContext& context, Arguments arguments) {
  ReplyTime(context, arguments[1], false, false);
}

void HandlePersist(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  bool changed = false;
  std::string value;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    changed = read->found && read->expiry_ms != 0;
    if (changed) batch->Put(key, value, ExtrasWithExpiry(*read, kNoExpiry));
    return absl::OkStatus();
  });
  if (!done) return;
  if (changed) context.Notify(kGenericEvent, "persist", key);
  context.reply.Integer(changed ? 1 : 0);
}

void SetWithTime(CommandContext& context, Arguments arguments, std::string_view name,
                 bool seconds) {
  const std::optional<int64_t> instant =
      ParseExpiry(context, name, arguments[2], {.seconds = seconds, .from_now = true});
  if (!instant) return;
  const std::string_view key = arguments[1];
  bool existed = true;  // looked for only where it is told
  if (context.server.clients.events.Tells(kNewEvent)) {
    std::string old;
    const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
      const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &old, batch);
      if (!read.ok()) return read.status();
      existed = read->found;
      batch->Put(key, arguments[3], kSelectedNamespace, ExpiryMillis(*instant));
      return absl::OkStatus();
    });
    if (!done) return;
  } else {
    WriteBatch& batch = ClearedBatch(context);
    batch.Put(key, arguments[3], kSelectedNamespace, ExpiryMillis(*instant));
    if (!context.Submit(&batch)) return;
  }
  context.NotifyWritten("set", key, existed);
  context.Notify(kGenericEvent, "expire", key);
  context.reply.Ok();
}

void HandleSetEx(CommandContext& context, Arguments arguments) {
  SetWithTime(context, arguments, "setex", true);
}
void HandlePSetEx(CommandContext& context, Arguments arguments) {
  SetWithTime(context, arguments, "psetex", false);
}

struct GetExOptions {
  bool persists = false;
  std::optional<ExpiryUnit> unit;
  std::string_view time;  // the last, where an option is there several times
};

// Nothing on a syntax error.
std::optional<GetExOptions> ParseGetExOptions(Arguments options) {
  GetExOptions parsed;
  for (size_t i = 0; i < options.size(); ++i) {
    const std::optional<ExpiryUnit> unit = ExpiryUnitOf(options[i]);
    if (EqualsIgnoreCase(options[i], "persist") && !parsed.unit) {
      parsed.persists = true;
    } else if (unit && i + 1 < options.size() && !parsed.persists &&
               parsed.unit.value_or(*unit) == *unit) {
      parsed.unit = unit;
      parsed.time = options[++i];
    } else {
      return std::nullopt;
    }
  }
  return parsed;
}

void HandleGetEx(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  const std::optional<GetExOptions> options = ParseGetExOptions(arguments.subspan(2));
  if (!options) return ReplySyntaxError(context);
  const std::optional<ExpiryUnit>& unit = options->unit;
  std::string value;
  if (!options->persists && !unit) {
    const std::optional<ReadResult> read = ReadKey(context, key, &value);
    if (read) read->found ? context.reply.Bulk(value) : context.reply.Null();
    return;
  }
  // A missing key is answered whatever the time is, as in Redis.
  std::optional<int64_t> instant;
  if (unit) {
    const std::optional<ReadResult> read = LookUpKey(context, key);
    if (!read || context.needs_pool()) return;
    if (!read->found) return context.reply.Null();
    instant = ParseExpiry(context, "getex", options->time, *unit);
    if (!instant) return;
  }
  bool found = false;
  std::string_view event;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    found = read->found;
    event = {};
    if (!found) return absl::OkStatus();
    if (instant && context.GoesAtOnce(ExpiryMillis(*instant))) {
      batch->Delete(key);
      event = "del";
    } else if (instant) {
      batch->Put(key, value, ExtrasWithExpiry(*read, ExpiryMillis(*instant)));
      event = "expire";
    } else if (read->expiry_ms != 0) {
      batch->Put(key, value, ExtrasWithExpiry(*read, kNoExpiry));
      event = "persist";
    }
    return absl::OkStatus();
  });
  if (!done) return;
  context.CountLookup(key, found);
  if (!event.empty()) context.Notify(kGenericEvent, event, key);
  found ? context.reply.Bulk(value) : context.reply.Null();
}

constexpr Command kExpiryRows[] = {
    {.name = "expire",
     .arity = -3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleExpire,
     .group = "generic",
     .summary = "Lets a key expire after some seconds.",
     .syntax = "key seconds [NX | XX | GT | LT]",
     .complexity = "O(M) for M bytes of the value, which is written anew",
     .redis = {.key_flags = "RW update"}},
    {.name = "expireat",
     .arity = -3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleExpireAt,
     .group = "generic",
     .summary = "Lets a key expire at an instant.",
     .syntax = "key unix-time-seconds [NX | XX | GT | LT]",
     .complexity = "O(M) for M bytes of the value, which is written anew",
     .redis = {.key_flags = "RW update"}},
    {.name = "expiretime",
     .arity = 2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleExpireTime,
     .group = "generic",
     .summary = "Answers the second at which a key expires; -1 if it stays, -2 if it is missing.",
     .syntax = "key",
     .complexity = "O(1)"},
    {.name = "getex",
     .arity = -2,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleGetEx,
     .group = "string",
     .summary = "Reads the value of a key and changes when it expires.",
     .syntax = "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT "
               "unix-time-milliseconds | "
               "PERSIST]",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "persist",
     .arity = 2,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandlePersist,
     .group = "generic",
     .summary = "Lets a key stay that would have expired.",
     .syntax = "key",
     .complexity = "O(M) for M bytes of the value, which is written anew",
     .redis = {.key_flags = "RW update"}},
    {.name = "pexpire",
     .arity = -3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandlePExpire,
     .group = "generic",
     .summary = "Lets a key expire after some milliseconds.",
     .syntax = "key milliseconds [NX | XX | GT | LT]",
     .complexity = "O(M) for M bytes of the value, which is written anew",
     .redis = {.key_flags = "RW update"}},
    {.name = "pexpireat",
     .arity = -3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandlePExpireAt,
     .group = "generic",
     .summary = "Lets a key expire at an instant, in milliseconds.",
     .syntax = "key unix-time-milliseconds [NX | XX | GT | LT]",
     .complexity = "O(M) for M bytes of the value, which is written anew",
     .redis = {.key_flags = "RW update"}},
    {.name = "pexpiretime",
     .arity = 2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandlePExpireTime,
     .group = "generic",
     .summary =
         "Answers the millisecond at which a key expires; -1 if it stays, -2 if it is missing.",
     .syntax = "key",
     .complexity = "O(1)"},
    {.name = "psetex",
     .arity = 4,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .handler = HandlePSetEx,
     .group = "string",
     .summary = "Writes the value of a key that expires after some milliseconds.",
     .syntax = "key milliseconds value",
     .complexity = "O(M) for M bytes of the value",
     .redis = {.flags = "denyoom", .key_flags = "OW update"}},
    {.name = "pttl",
     .arity = 2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandlePTtl,
     .group = "generic",
     .summary =
         "Answers the milliseconds that a key has left; -1 if it stays, -2 if it is missing.",
     .syntax = "key",
     .complexity = "O(1)",
     .redis = {.tips = "nondeterministic_output"}},
    {.name = "setex",
     .arity = 4,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .handler = HandleSetEx,
     .group = "string",
     .summary = "Writes the value of a key that expires after some seconds.",
     .syntax = "key seconds value",
     .complexity = "O(M) for M bytes of the value",
     .redis = {.flags = "denyoom", .key_flags = "OW update"}},
    {.name = "ttl",
     .arity = 2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleTtl,
     .group = "generic",
     .summary = "Answers the seconds that a key has left; -1 if it stays, -2 if it is missing.",
     .syntax = "key",
     .complexity = "O(1)",
     .redis = {.tips = "nondeterministic_output"}},
};

}  // namespace

absl::Span<const Command> ExpiryCommands() { return kExpiryRows; }

}  // namespace varve
