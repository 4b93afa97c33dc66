// Commands on the value of one key.
#include <algorithm>
#include <optional>
#include <string>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/expiry_time.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"
#include "server/execution/value_condition.h"
#include "server/past/past_read.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// Bytes of a value's memory that are worth keeping for the next one.
constexpr size_t kKeptString = 64u << 10;

constexpr std::string_view kTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

struct SetOptions {
  ValueCondition condition;
  bool get = false;
  bool keeps_expiry = false;
  std::optional<ExpiryUnit> unit;  // of `time`
  std::string_view time;
  bool keeps_metadata = false;
  std::optional<std::string_view> metadata;
};

// Nothing on a syntax error.
std::optional<SetOptions> ParseSetOptions(Arguments options) {
  SetOptions parsed;
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string_view option = options[i];
    const bool argument_follows = i + 1 < options.size();
    const std::optional<ExpiryUnit> unit = ExpiryUnitOf(option);
    if (EqualsIgnoreCase(option, "get")) {
      parsed.get = true;
    } else if (EqualsIgnoreCase(option, "keepttl") && !parsed.unit) {
      parsed.keeps_expiry = true;
    } else if (unit && argument_follows && !parsed.keeps_expiry &&
               parsed.unit.value_or(*unit) == *unit) {
      parsed.unit = unit;
      parsed.time = options[++i];
    } else if (EqualsIgnoreCase(option, "keepmeta") && !parsed.metadata) {
      parsed.keeps_metadata = true;
    } else if (EqualsIgnoreCase(option, "meta") && argument_follows && !parsed.keeps_metadata) {
      parsed.metadata = options[++i];
    } else if (parsed.condition.SetPresence(option)) {
      continue;
    } else if (argument_follows && parsed.condition.SetComparison(option, options[i + 1])) {
      ++i;
    } else {
      return std::nullopt;
    }
  }
  // Each has a reply of its own.
  if (parsed.get && parsed.condition.ComparesVersion()) return std::nullopt;
  return parsed;
}

void ReplyValue(CommandContext& context, bool found, std::string_view value) {
  found ? context.reply.Bulk(value) : context.reply.Null();
}

// Only inside EXEC and of clients with modes: other GETs are answered by a RequestRun, unless they
// ask for the version or the metadata.
void HandleGet(CommandContext& context, Arguments arguments) {
  thread_local std::string value;  // keeps its memory from one request to the next
  const bool with_metadata = arguments.size() == 3 && EqualsIgnoreCase(arguments[2], "withmeta");
  const std::optional<ReadResult> read = ReadKey(context, arguments[1], &value, with_metadata);
  if (!read) return;
  if (arguments.size() == 3 && read->found) {
    context.reply.Array(with_metadata ? 3 : 2);
    context.reply.Bulk(value);
    ReplyVersion(context, read->version);
    if (with_metadata) ReplyMetadata(context, read->MetadataView());
  } else {
    ReplyValue(context, read->found, value);
  }
  if (value.capacity() > kKeptString) std::string().swap(value);
}

// The new value with what belongs to it.
struct Replacement {
  std::string_view value;
  uint64_t expiry_ms = kUsualExpiry;
  bool keeps_expiry = false;
  std::string_view metadata = {};
  bool keeps_metadata = false;
};
struct Replaced {
  bool existed = false;
  bool written = false;
  SequenceNumber version = kNoSequence;  // of what was written, where it is known
  std::string old;
};
// Replaces the value of `key` if `condition` holds. False: it failed, and the error was answered.
bool Replace(CommandContext& context, std::string_view key, const Replacement& replacement,
             const ValueCondition& condition, Replaced* replaced) {
  const auto decide = [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &replaced->old, batch);
    if (!read.ok()) return read.status();
    replaced->existed = read->found;
    replaced->written = condition.Holds(*read, replaced->old);
    if (!replaced->written) return absl::OkStatus();
    batch->Put(
        key, replacement.value,
        {.expiry_ms = replacement.keeps_expiry ? read->expiry_ms : replacement.expiry_ms,
         .metadata = replacement.keeps_metadata ? read->MetadataView() : replacement.metadata});
    return absl::OkStatus();
  };
  return Update(context, {&key, 1}, decide, &replaced->version);
}

// Plain SETs come here only inside EXEC, of clients with modes, and where each has to look whether
// its key is new: others are answered by a RequestRun.
void HandleSet(CommandContext& context, Arguments arguments) {
  const bool looks = context.server.clients.events.Tells(kNewEvent);  // whether the key is new
  const std::optional<SetOptions> options = ParseSetOptions(arguments.subspan(3));
  if (!options) return ReplySyntaxError(context);
  Replacement replacement{.value = arguments[2],
                          .keeps_expiry = options->keeps_expiry,
                          .metadata = options->metadata.value_or(std::string_view()),
                          .keeps_metadata = options->keeps_metadata};
  if (replacement.metadata.size() > kMaxMetadataSize) return context.reply.Error(kMetadataTooLong);
  if (options->unit) {
    const std::optional<int64_t> instant =
        ParseExpiry(context, "set", options->time, *options->unit);
    if (!instant) return;
    replacement.expiry_ms = ExpiryMillis(*instant);
  }
  if (const std::string_view defect = options->condition.Defect(); !defect.empty())
    return context.reply.Error(defect);
  const bool keeps = options->keeps_expiry || options->keeps_metadata;
  if (options->condition.Always() && !options->get && !keeps && !looks) {
    WriteBatch& batch = ClearedBatch(context);
    batch.Put(arguments[1], arguments[2],
              {.expiry_ms = replacement.expiry_ms, .metadata = replacement.metadata});
    if (!context.Submit(&batch)) return;
    context.Notify(kStringEvent, "set", arguments[1]);
    if (options->unit) context.Notify(kGenericEvent, "expire", arguments[1]);
    return context.reply.Ok();
  }
  Replaced replaced;
  if (!Replace(context, arguments[1], replacement, options->condition, &replaced)) return;
  if (options->get && !replaced.existed) context.Notify(kMissEvent, "keymiss", arguments[1]);
  if (replaced.written) {
    context.NotifyWritten("set", arguments[1], replaced.existed);
    if (options->unit) context.Notify(kGenericEvent, "expire", arguments[1]);
  }
  if (options->get) return ReplyValue(context, replaced.existed, replaced.old);
  const bool answers_version =
      options->condition.ComparesVersion() && replaced.version != kNoSequence;
  if (answers_version && replaced.written) return ReplyVersion(context, replaced.version);
  replaced.written ? context.reply.Ok() : context.reply.Null();
}

void HandleGetSet(CommandContext& context, Arguments arguments) {
  Replaced replaced;
  if (!Replace(context, arguments[1], {.value = arguments[2]}, {}, &replaced)) return;
  if (!replaced.existed) context.Notify(kMissEvent, "keymiss", arguments[1]);
  context.NotifyWritten("set", arguments[1], replaced.existed);
  ReplyValue(context, replaced.existed, replaced.old);
}

void HandleSetNx(CommandContext& context, Arguments arguments) {
  ValueCondition condition;
  condition.SetPresence("nx");
  Replaced replaced;
  if (!Replace(context, arguments[1], {.value = arguments[2]}, condition, &replaced)) return;
  if (replaced.written) context.NotifyWritten("set", arguments[1], false);
  context.reply.Integer(replaced.written ? 1 : 0);
}

void HandleGetDel(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  bool found = false;
  std::string value;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    found = read->found;
    if (found) batch->Delete(key);
    return absl::OkStatus();
  });
  if (!done) return;
  found ? context.Notify(kGenericEvent, "del", key) : context.Notify(kMissEvent, "keymiss", key);
  ReplyValue(context, found, value);
}

// Changes the value of `key`, which is told as `event`; a missing one is changed from the empty
// string. `change` returns an error text, or nothing and whether there is anything to write.
// Answers the new length.
struct Change {
  std::string_view refused;
  bool write = true;
};
void ChangeValue(CommandContext& context, std::string_view key, std::string_view event,
                 absl::FunctionRef<Change(bool found, std::string* value)> change) {
  std::string value;
  bool existed = false;
  Change made;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    existed = read->found;
    made = change(existed, &value);
    if (made.refused.empty() && made.write) batch->Put(key, value, ExtrasOf(*read));
    return absl::OkStatus();
  });
  if (!done) return;
  if (!made.refused.empty()) return context.reply.Error(made.refused);
  if (made.write) context.NotifyWritten(event, key, existed);
  context.reply.Integer(static_cast<int64_t>(value.size()));
}

void HandleAppend(CommandContext& context, Arguments arguments) {
  const std::string_view tail = arguments[2];
  ChangeValue(context, arguments[1], "append", [&](bool, std::string* value) -> Change {
    if (value->size() + tail.size() > context.server.live.max_value_bytes) return {kTooLong};
    value->append(tail);  // of nothing, too, is a write
    return {};
  });
}

void HandleSetRange(CommandContext& context, Arguments arguments) {
  int64_t offset = 0;
  if (!ParseRespInteger(arguments[2], &offset)) return context.reply.Error(kNoInteger);
  if (offset < 0) return context.reply.Error("ERR offset is out of range");
  const std::string_view part = arguments[3];
  const auto begin = static_cast<size_t>(offset);
  const size_t most = context.server.live.max_value_bytes;
  if (!part.empty() && (part.size() > most || begin > most - part.size())) {
    return context.reply.Error(kTooLong);
  }
  if (!part.empty() && context.NeedsPoolFor(begin + part.size())) return;
  ChangeValue(context, arguments[1], "setrange", [&](bool, std::string* value) -> Change {
    if (part.empty()) return {{}, false};
    if (value->size() < begin + part.size()) value->resize(begin + part.size());
    value->replace(begin, part.size(), part);
    return {};
  });
}

void HandleStrLen(CommandContext& context, Arguments arguments) {
  const std::optional<ReadResult> read = LookUpKey(context, arguments[1]);
  if (read) context.reply.Integer(static_cast<int64_t>(read->value_size));
}

void HandleGetRange(CommandContext& context, Arguments arguments) {
  int64_t first = 0;
  int64_t last = 0;
  if (!ParseRespInteger(arguments[2], &first) || !ParseRespInteger(arguments[3], &last)) {
    return context.reply.Error(kNoInteger);
  }
  std::string value;
  if (!ReadKey(context, arguments[1], &value)) return;
  const auto size = static_cast<int64_t>(value.size());
  // Redis' order of steps: only then is what lies before the beginning the first byte, unless the
  // range runs backwards.
  const bool backwards = first < 0 && last < 0 && first > last;
  if (first < 0) first = std::max<int64_t>(size + first, 0);
  if (last < 0) last = std::max<int64_t>(size + last, 0);
  last = std::min(last, size - 1);
  if (backwards || first > last) return context.reply.Bulk({});
  context.reply.Bulk(std::string_view(value).substr(static_cast<size_t>(first),
                                                    static_cast<size_t>(last - first + 1)));
}

void HandleDigest(CommandContext& context, Arguments arguments) {
  std::string value;
  const std::optional<ReadResult> read = ReadKey(context, arguments[1], &value);
  if (read) ReplyValue(context, read->found, DigestText(value));
}

void HandleDelEx(CommandContext& context, Arguments arguments) {
  if (arguments.size() != 2 && arguments.size() != 4) return ReplyWrongArity(context, "delex");
  const std::string_view key = arguments[1];
  ValueCondition condition;
  std::string_view refused;
  if (arguments.size() == 4) {
    if (!condition.SetComparison(arguments[2], arguments[3])) {
      refused = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE";
    } else {
      refused = condition.Defect();
    }
  }
  bool found = false;
  bool deleted = false;
  std::string value;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    found = read->found;
    deleted = found && refused.empty() && condition.Holds(*read, value);
    if (deleted) batch->Delete(key);
    return absl::OkStatus();
  });
  if (!done) return;
  if (found && !refused.empty())
    return context.reply.Error(refused);  // a missing key is 0 whatever is asked, as in Redis
  if (deleted) context.Notify(kGenericEvent, "del", key);
  context.reply.Integer(deleted ? 1 : 0);
}

constexpr std::string_view kSetSyntax =
    "key value [NX | XX | IFEQ value | IFNE value | IFDEQ digest | IFDNE digest | IFVERSION "
    "version] [GET] [EX seconds "
    "| "
    "PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] [META bytes "
    "| KEEPMETA]";

constexpr Command kStringRows[] = {
    {.name = "append",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleAppend,
     .group = "string",
     .summary = "Adds to the end of a value; answers its new length.",
     .syntax = "key value",
     .complexity = "O(M) for M bytes of the new value, which is written anew",
     .redis = {.flags = "denyoom", .key_flags = "RW insert"}},
    {.name = "delex",
     .arity = -2,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleDelEx,
     .group = "string",
     .summary =
         "Deletes a key if its value, its digest or its version is, or is not, the one named.",
     .syntax = "key [IFEQ value | IFNE value | IFDEQ digest | IFDNE digest | IFVERSION version]",
     .complexity = "O(1), or O(M) for M bytes of the value where the condition looks at it",
     .redis = {.key_flags = "RW access delete"}},
    {.name = "digest",
     .arity = 2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleDigest,
     .group = "string",
     .summary = "Answers the XXH3 hash of a value as 16 hexadecimal digits.",
     .syntax = "key",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "get",
     .arity = 2,
     .flags = kReadCommand | kFastCommand | kPastCommand,
     .keys = kOneKey,
     .kind = CommandKind::kGet,
     .handler = NowOrAt<HandleGet, 2>,
     .group = "string",
     .summary = "Reads the value of a key, and its version and metadata if asked.",
     .syntax = "key [WITHVERSION | WITHMETA] [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "getdel",
     .arity = 2,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleGetDel,
     .group = "string",
     .summary = "Reads the value of a key and deletes it.",
     .syntax = "key",
     .complexity = "O(M) for M bytes of the value",
     .redis = {.key_flags = "RW access delete"}},
    {.name = "getrange",
     .arity = 4,
     .flags = kReadCommand,
     .keys = kOneKey,
     .handler = HandleGetRange,
     .group = "string",
     .summary = "Reads the bytes of a value between two places, counted from 0, or from the end by "
                "-1, -2, "
                "...",
     .syntax = "key start end",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "getset",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleGetSet,
     .group = "string",
     .summary = "Writes the value of a key; answers the old one.",
     .syntax = "key value",
     .complexity = "O(M) for M bytes of both values",
     .redis = {.flags = "denyoom"}},
    {.name = "put",
     .arity = -3,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .kind = CommandKind::kSet,
     .handler = HandleSet,
     .group = "string",
     .summary = "The same as SET.",
     .syntax = kSetSyntax,
     .complexity = "O(M) for M bytes of the value",
     .redis = {.flags = "denyoom"}},
    {.name = "set",
     .arity = -3,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .kind = CommandKind::kSet,
     .handler = HandleSet,
     .group = "string",
     .summary = "Writes the value of a key, with metadata if given.",
     .syntax = kSetSyntax,
     .complexity = "O(M) for M bytes of the value",
     .redis = {.flags = "denyoom"}},
    {.name = "setnx",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleSetNx,
     .group = "string",
     .summary = "Writes the value of a key that does not exist.",
     .syntax = "key value",
     .complexity = "O(M) for M bytes of the value",
     .redis = {.flags = "denyoom", .key_flags = "OW insert"}},
    {.name = "setrange",
     .arity = 4,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .handler = HandleSetRange,
     .group = "string",
     .summary = "Overwrites part of a value, which grows as needed; answers its new length.",
     .syntax = "key offset value",
     .complexity = "O(M) for M bytes of the new value, which is written anew",
     .redis = {.flags = "denyoom", .key_flags = "RW update"}},
    {.name = "strlen",
     .arity = 2,
     .flags = kReadCommand | kFastCommand | kPastCommand,
     .keys = kOneKey,
     .handler = NowOrAt<HandleStrLen, 2>,
     .group = "string",
     .summary = "Answers the length of a value, 0 for a missing key.",
     .syntax = "key [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(1)",
     .redis = {.key_flags = "RO"}},
    {.name = "substr",
     .arity = 4,
     .flags = kReadCommand,
     .keys = kOneKey,
     .handler = HandleGetRange,
     .group = "string",
     .summary = "The same as GETRANGE.",
     .syntax = "key start end",
     .complexity = "O(M) for M bytes of the value"},
};

}  // namespace

absl::Span<const Command> StringCommands() { return kStringRows; }

}  // namespace varve
