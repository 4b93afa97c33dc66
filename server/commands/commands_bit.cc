// Commands on the bits of a value. One that is written to is read and written back as a whole.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/bitfield.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"
#include "util/redis_format/bits.h"
#include "util/resp/resp_parser.h"
#include "varve/options.h"

namespace varve {
namespace {

constexpr std::string_view kBadOffset = "ERR bit offset is not an integer or out of range";

// Reads a value for a command that only reads. False: it failed, and the error was answered.
bool ReadValue(CommandContext& context, std::string_view key, std::string* value, bool* found) {
  const absl::StatusOr<ReadResult> read = context.Get(key, value);
  if (!read.ok()) {
    context.Fail(read.status());
    return false;
  }
  NoteRead(context, key, *read);
  *found = read->found;
  if (!read->found) value->clear();
  return true;
}

void HandleSetBit(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  const std::optional<uint64_t> bit = ParseBitOffset(arguments[2]);
  if (!bit || *bit / 8 >= context.server.live.max_value_bytes)
    return context.reply.Error(kBadOffset);
  if (arguments[3] != "0" && arguments[3] != "1") {
    return context.reply.Error("ERR bit is not an integer or out of range");
  }
  if (context.NeedsPoolFor(*bit / 8 + 1)) return;
  const bool wanted = arguments[3] == "1";
  bool old = false;
  bool existed = false;
  bool changed = false;
  std::string value;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    existed = read->found;
    old = BitAt(value, *bit);
    changed = old != wanted || *bit / 8 >= value.size();
    if (!changed) return absl::OkStatus();
    SetBitAt(&value, *bit, wanted);
    batch->Put(key, value, ExtrasOf(*read));
    return absl::OkStatus();
  });
  if (!done) return;
  if (changed) context.NotifyWritten("setbit", key, existed);
  context.reply.Integer(old ? 1 : 0);
}

void HandleGetBit(CommandContext& context, Arguments arguments) {
  const std::optional<uint64_t> bit = ParseBitOffset(arguments[2]);
  if (!bit) return context.reply.Error(kBadOffset);
  std::string value;
  bool found = false;
  if (ReadValue(context, arguments[1], &value, &found))
    context.reply.Integer(BitAt(value, *bit) ? 1 : 0);
}

// A range of a value as BITCOUNT and BITPOS take it: `start` and `end` count bytes or bits, from
// the end when negative.
struct ValueRange {
  int64_t start = 0;
  int64_t end = -1;
  bool in_bits = false;
};

// The bits [first, last] that it means in a value of `bytes` bytes; nothing: none.
struct BitRange {
  uint64_t first;
  uint64_t last;
};
std::optional<BitRange> Resolve(ValueRange range, size_t bytes) {
  const int64_t total = static_cast<int64_t>(bytes) * (range.in_bits ? 8 : 1);
  if (range.start < 0) range.start += total;
  if (range.end < 0) range.end += total;
  range.start = std::max<int64_t>(range.start, 0);
  range.end = std::min(std::max<int64_t>(range.end, 0), total - 1);
  if (range.start > range.end) return std::nullopt;
  const uint64_t first = static_cast<uint64_t>(range.start);
  const uint64_t last = static_cast<uint64_t>(range.end);
  if (range.in_bits) return BitRange{first, last};
  return BitRange{first * 8, last * 8 + 7};
}

// BIT or BYTE. False: neither.
bool ParseUnit(std::string_view unit, bool* in_bits) {
  *in_bits = EqualsIgnoreCase(unit, "bit");
  return *in_bits || EqualsIgnoreCase(unit, "byte");
}

// A missing key is answered before the rest of the arguments is looked at, here and in BITPOS: so
// does Redis.
void HandleBitCount(CommandContext& context, Arguments arguments) {
  std::string value;
  bool found = false;
  if (!ReadValue(context, arguments[1], &value, &found)) return;
  if (!found) return context.reply.Integer(0);
  ValueRange range;
  if (arguments.size() != 2 && arguments.size() != 4 && arguments.size() != 5)
    return ReplySyntaxError(context);
  if (arguments.size() > 2) {
    if (!ParseRespInteger(arguments[2], &range.start) ||
        !ParseRespInteger(arguments[3], &range.end)) {
      return context.reply.Error(kNoInteger);
    }
    if (range.start < 0 && range.end < 0 && range.start > range.end)
      return context.reply.Integer(0);
    if (arguments.size() == 5 && !ParseUnit(arguments[4], &range.in_bits))
      return ReplySyntaxError(context);
  }
  const std::optional<BitRange> bits = Resolve(range, value.size());
  context.reply.Integer(bits ? static_cast<int64_t>(CountOnes(value, bits->first, bits->last)) : 0);
}

void HandleBitPos(CommandContext& context, Arguments arguments) {
  int64_t bit = 0;
  if (!ParseRespInteger(arguments[2], &bit)) return context.reply.Error(kNoInteger);
  if (bit != 0 && bit != 1) return context.reply.Error("ERR The bit argument must be 1 or 0.");
  std::string value;
  bool found = false;
  if (!ReadValue(context, arguments[1], &value, &found)) return;
  if (!found) return context.reply.Integer(bit == 1 ? -1 : 0);
  if (arguments.size() > 6) return ReplySyntaxError(context);
  ValueRange range;
  const bool end_given = arguments.size() > 4;
  if (arguments.size() > 3 && !ParseRespInteger(arguments[3], &range.start))
    return context.reply.Error(kNoInteger);
  if (arguments.size() > 5 && !ParseUnit(arguments[5], &range.in_bits))
    return ReplySyntaxError(context);
  if (end_given && !ParseRespInteger(arguments[4], &range.end))
    return context.reply.Error(kNoInteger);
  const std::optional<BitRange> bits = Resolve(range, value.size());
  if (!bits) return context.reply.Integer(-1);
  const std::optional<uint64_t> position = FindBit(value, bit == 1, bits->first, bits->last);
  if (position) return context.reply.Integer(static_cast<int64_t>(*position));
  // Without an end the value counts as followed by zeros.
  context.reply.Integer(bit == 0 && !end_given ? static_cast<int64_t>(value.size() * 8) : -1);
}

void HandleBitOp(CommandContext& context, Arguments arguments) {
  const std::string_view name = arguments[1];
  const bool invert = EqualsIgnoreCase(name, "not");
  BitOperation operation = BitOperation::kAnd;
  if (EqualsIgnoreCase(name, "or")) {
    operation = BitOperation::kOr;
  } else if (EqualsIgnoreCase(name, "xor")) {
    operation = BitOperation::kXor;
  } else if (!invert && !EqualsIgnoreCase(name, "and")) {
    return ReplySyntaxError(context);
  }
  const std::string_view target = arguments[2];
  const Arguments sources = arguments.subspan(3);
  if (invert && sources.size() != 1) {
    return context.reply.Error("ERR BITOP NOT must be called with a single source key.");
  }
  std::string result;
  std::string operand;  // two values are held at a time, however many keys there are
  const bool tells = context.server.clients.events.Tells(kNewEvent) ||
                     context.server.clients.events.Tells(kGenericEvent);
  bool existed = true;  // looked for only where it is told
  std::vector<std::string_view> missing;
  const bool done = Update(context, arguments.subspan(2), [&](WriteBatch* batch) -> absl::Status {
    missing.clear();
    for (size_t i = 0; i < sources.size(); ++i) {
      const absl::StatusOr<ReadResult> read =
          ReadForUpdate(context, sources[i], i == 0 ? &result : &operand, batch);
      if (!read.ok()) return read.status();
      if (!read->found) missing.push_back(sources[i]);
      if (i > 0) CombineBits(operation, operand, &result);
    }
    if (invert) InvertBits(&result);
    if (tells) {
      const absl::StatusOr<ReadResult> read = ReadForUpdate(context, target, &operand, batch);
      if (!read.ok()) return read.status();
      existed = read->found;
    }
    if (result.empty()) {
      batch->Delete(target);
    } else {
      batch->Put(target, result);
    }
    return absl::OkStatus();
  });
  if (!done) return;
  for (const std::string_view key : missing) context.Notify(kMissEvent, "keymiss", key);
  if (!result.empty()) {
    context.NotifyWritten("set", target, existed);
  } else if (existed) {
    context.Notify(kGenericEvent, "del", target);
  }
  context.reply.Integer(static_cast<int64_t>(result.size()));
}

struct FieldOperation {
  enum class Kind { kGet, kSet, kIncrement };
  Kind kind;
  BitFieldType type;
  uint64_t offset;
  int64_t argument;
  BitFieldOverflow overflow;
};

std::optional<BitFieldOverflow> ParseOverflow(std::string_view text) {
  if (EqualsIgnoreCase(text, "wrap")) return BitFieldOverflow::kWrap;
  if (EqualsIgnoreCase(text, "sat")) return BitFieldOverflow::kSaturate;
  if (EqualsIgnoreCase(text, "fail")) return BitFieldOverflow::kFail;
  return std::nullopt;
}

// Answers an error and returns false when they can't be followed.
bool ParseFieldOperations(CommandContext& context, Arguments rest,
                          std::vector<FieldOperation>* operations) {
  using Kind = FieldOperation::Kind;
  BitFieldOverflow overflow = BitFieldOverflow::kWrap;
  const auto refuse = [&](std::string_view error) {
    context.reply.Error(error);
    return false;
  };
  while (!rest.empty()) {
    const std::string_view name = rest[0];
    if (EqualsIgnoreCase(name, "overflow") && rest.size() > 1) {
      const std::optional<BitFieldOverflow> parsed = ParseOverflow(rest[1]);
      if (!parsed) return refuse("ERR Invalid OVERFLOW type specified");
      overflow = *parsed;
      rest = rest.subspan(2);
      continue;
    }
    const bool get = EqualsIgnoreCase(name, "get");
    const bool set = EqualsIgnoreCase(name, "set");
    const size_t size = get ? 3 : 4;
    if ((!get && !set && !EqualsIgnoreCase(name, "incrby")) || rest.size() < size) {
      return refuse("ERR syntax error");
    }
    const std::optional<BitFieldType> type = ParseBitFieldType(rest[1]);
    if (!type) {
      return refuse(
          "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported "
          "but i64 is.");
    }
    const std::optional<uint64_t> offset = ParseFieldOffset(rest[2], type->bits);
    if (!offset) return refuse(kBadOffset);
    int64_t argument = 0;
    if (!get && !ParseRespInteger(rest[3], &argument)) return refuse(kNoInteger);
    operations->push_back({get   ? Kind::kGet
                           : set ? Kind::kSet
                                 : Kind::kIncrement,
                           *type, *offset, argument, overflow});
    rest = rest.subspan(size);
  }
  return true;
}

// What the operation answers; nothing where its overflow failed. `value` is long enough for what is
// written. As in Redis, an increment counts as a change even where it adds nothing.
std::optional<int64_t> Apply(const FieldOperation& operation, std::string* value, bool* changed) {
  const int64_t old = ReadField(*value, operation.type, operation.offset);
  if (operation.kind == FieldOperation::Kind::kGet) return old;
  const bool set = operation.kind == FieldOperation::Kind::kSet;
  const std::optional<int64_t> fitted =
      set ? FitValue(operation.type, operation.argument, operation.overflow)
          : FitSum(operation.type, old, operation.argument, operation.overflow);
  if (!fitted) return std::nullopt;
  if (!set || *fitted != old) *changed = true;
  WriteBits(value, operation.offset, operation.type.bits, static_cast<uint64_t>(*fitted));
  return set ? old : *fitted;
}

void ReplyFields(RespWriter& reply, const std::vector<std::optional<int64_t>>& results) {
  reply.Array(results.size());
  for (const std::optional<int64_t>& result : results) {
    if (result) {
      reply.Integer(*result);
    } else {
      reply.Null();
    }
  }
}

void HandleBitField(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  std::vector<FieldOperation> operations;
  if (!ParseFieldOperations(context, arguments.subspan(2), &operations)) return;
  // Redis fills the value up to the last bit that may be written, also where writing it fails.
  uint64_t bytes = 0;
  for (const FieldOperation& operation : operations) {
    if (operation.kind == FieldOperation::Kind::kGet) continue;
    bytes = std::max(bytes, (operation.offset + operation.type.bits + 7) / 8);
  }
  if (bytes > context.server.live.max_value_bytes) return context.reply.Error(kBadOffset);
  std::string value;
  std::vector<std::optional<int64_t>> results;
  bool changed = false;
  bool existed = false;
  const auto apply_all = [&] {
    results.clear();
    for (const FieldOperation& operation : operations)
      results.push_back(Apply(operation, &value, &changed));
  };
  if (bytes == 0) {
    bool found = false;
    if (!ReadValue(context, key, &value, &found)) return;
    apply_all();
    return ReplyFields(context.reply, results);
  }
  if (EqualsIgnoreCase(arguments[0], "bitfield_ro")) {
    return context.reply.Error("ERR BITFIELD_RO only supports the GET subcommand");
  }
  if (context.NeedsPoolFor(bytes)) return;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    existed = read->found;
    changed = value.size() < bytes;
    if (changed) value.resize(bytes, '\0');
    apply_all();
    if (changed) batch->Put(key, value, ExtrasOf(*read));
    return absl::OkStatus();
  });
  if (!done) return;
  if (changed) context.NotifyWritten("setbit", key, existed);
  ReplyFields(context.reply, results);
}

constexpr std::string_view kFieldSyntax =
    "key [GET type offset | [OVERFLOW WRAP|SAT|FAIL] SET type offset value | INCRBY type offset "
    "increment ...]";
constexpr Command kBitRows[] = {
    {.name = "bitcount",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand,
     .keys = kOneKey,
     .handler = HandleBitCount,
     .group = "bitmap",
     .summary = "Counts the ones of a value or of a range of it.",
     .syntax = "key [start end [BYTE | BIT]]",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "bitfield",
     .arity = -2,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .handler = HandleBitField,
     .group = "bitmap",
     .summary = "Reads and writes numbers of any width inside a value.",
     .syntax = kFieldSyntax,
     .complexity = "O(M + N) for N operations and M bytes of the value",
     .redis = {.flags = "denyoom"}},
    {.name = "bitfield_ro",
     .arity = -2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleBitField,
     .group = "bitmap",
     .summary = "Reads numbers of any width inside a value.",
     .syntax = "key [GET type offset ...]",
     .complexity = "O(M + N) for N operations and M bytes of the value"},
    {.name = "bitop",
     .arity = -4,
     .flags = kWriteCommand | kSlowCommand,
     .keys = {.first = 2, .last = -1, .step = 1},
     .handler = HandleBitOp,
     .group = "bitmap",
     .summary = "Combines the bits of values and stores what comes out.",
     .syntax = "AND|OR|XOR|NOT destination key [key ...]",
     .complexity = "O(N * M) for N values of at most M bytes",
     .redis = {.flags = "denyoom"}},
    {.name = "bitpos",
     .arity = -3,
     .flags = kReadCommand | kSlowCommand,
     .keys = kOneKey,
     .handler = HandleBitPos,
     .group = "bitmap",
     .summary = "Finds the first one or zero of a value or of a range of it.",
     .syntax = "key bit [start [end [BYTE | BIT]]]",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "getbit",
     .arity = 3,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleGetBit,
     .group = "bitmap",
     .summary = "Reads one bit of a value.",
     .syntax = "key offset",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "setbit",
     .arity = 4,
     .flags = kWriteCommand,
     .keys = kOneKey,
     .handler = HandleSetBit,
     .group = "bitmap",
     .summary = "Writes one bit of a value; answers what it was.",
     .syntax = "key offset value",
     .complexity = "O(M) for M bytes of the value, which is written anew",
     .redis = {.flags = "denyoom"}},
};

}  // namespace

absl::Span<const Command> BitCommands() { return kBitRows; }

}  // namespace varve
