// Commands on keys, whatever their values are.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/database_index.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"
#include "server/execution/store_capability.h"
#include "server/past/past_read.h"
#include "server/scans/key_scan.h"
#include "server/scans/random_key.h"
#include "server/scans/range_stream.h"
#include "util/base/glob.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

void HandleType(CommandContext& context, Arguments arguments) {
  const std::optional<ReadResult> read = PeekAtKey(context, arguments[1]);
  if (read) context.reply.Simple(read->found ? "string" : "none");
}

// Gives the value of one key to another one in one step.
struct Transfer {
  bool keeps_source = false;
  bool keeps_target = false;              // nothing happens when it exists
  NamespaceId space = kDefaultNamespace;  // of the target
};
enum class Transferred : uint8_t { kDone, kNoSource, kTargetExists };

// Nothing: it failed, and the error was answered. The keys, or their namespaces, differ.
std::optional<Transferred> Move(CommandContext& context, std::string_view source,
                                std::string_view target, const Transfer& transfer) {
  if (RefusedAcrossGroups(context, source, transfer.space, target)) return std::nullopt;
  Transferred outcome = Transferred::kDone;
  std::string value;
  std::string old;
  const std::string_view keys[] = {source, target};
  const bool done = Update(context, keys, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, source, &value, batch);
    if (!read.ok()) return read.status();
    outcome = read->found ? Transferred::kDone : Transferred::kNoSource;
    if (!read->found) return absl::OkStatus();
    if (transfer.keeps_target) {
      const absl::StatusOr<ReadResult> there =
          ReadForUpdateIn(transfer.space, context, target, &old, batch);
      if (!there.ok()) return there.status();
      outcome = there->found ? Transferred::kTargetExists : Transferred::kDone;
      if (there->found) return absl::OkStatus();
    }
    if (!transfer.keeps_source) batch->Delete(source);
    batch->Put(target, value, ExtrasOf(*read), transfer.space);
    return absl::OkStatus();
  });
  if (!done) return std::nullopt;
  return outcome;
}

// The same for RENAME and RENAMENX, where a key may take its own name. Nothing: an error was
// answered.
std::optional<Transferred> Rename(CommandContext& context, Arguments arguments, bool keeps_target) {
  std::optional<Transferred> outcome = Transferred::kTargetExists;
  if (arguments[1] == arguments[2]) {
    const std::optional<ReadResult> read = LookUpKey(context, arguments[1]);
    if (!read) return std::nullopt;
    if (!read->found) outcome = Transferred::kNoSource;
  } else {
    outcome = Move(context, arguments[1], arguments[2],
                   {.keeps_source = false, .keeps_target = keeps_target, .space = context.space()});
  }
  if (outcome == Transferred::kDone) {
    context.Notify(kNewEvent, "new", arguments[2]);
    context.Notify(kGenericEvent, "rename_from", arguments[1]);
    context.Notify(kGenericEvent, "rename_to", arguments[2]);
  }
  if (outcome != Transferred::kNoSource) return outcome;
  context.reply.Error("ERR no such key");
  return std::nullopt;
}

void HandleRename(CommandContext& context, Arguments arguments) {
  if (Rename(context, arguments, false)) context.reply.Ok();
}

void HandleRenameNx(CommandContext& context, Arguments arguments) {
  const std::optional<Transferred> outcome = Rename(context, arguments, true);
  if (outcome) context.reply.Integer(*outcome == Transferred::kDone ? 1 : 0);
}

void HandleCopy(CommandContext& context, Arguments arguments) {
  bool replace = false;
  NamespaceId space = context.space();
  for (size_t i = 3; i < arguments.size(); ++i) {
    if (EqualsIgnoreCase(arguments[i], "replace")) {
      replace = true;
    } else if (EqualsIgnoreCase(arguments[i], "db") && i + 1 < arguments.size()) {
      const std::optional<NamespaceId> database = ParseDatabase(context, arguments[++i]);
      if (!database) return;
      space = *database;
    } else {
      return ReplySyntaxError(context);
    }
  }
  if (arguments[1] == arguments[2] && space == context.space()) {
    return context.reply.Error("ERR source and destination objects are the same");
  }
  if (space != context.space() && !OpenDatabase(context, space)) return;
  const std::optional<Transferred> outcome =
      Move(context, arguments[1], arguments[2],
           {.keeps_source = true, .keeps_target = !replace, .space = space});
  if (!outcome) return;
  if (*outcome == Transferred::kDone) {
    context.NotifyIn(space, kNewEvent, "new", arguments[2]);
    context.NotifyIn(space, kGenericEvent, "copy_to", arguments[2]);
  } else if (*outcome == Transferred::kNoSource) {
    context.Notify(kMissEvent, "keymiss", arguments[1]);
  }
  context.reply.Integer(*outcome == Transferred::kDone ? 1 : 0);
}

void HandleMove(CommandContext& context, Arguments arguments) {
  const std::optional<NamespaceId> space = ParseDatabase(context, arguments[2]);
  if (!space) return;
  if (*space == context.space())
    return context.reply.Error("ERR source and destination objects are the same");
  if (!OpenDatabase(context, *space)) return;
  const std::optional<Transferred> outcome =
      Move(context, arguments[1], arguments[1],
           {.keeps_source = false, .keeps_target = true, .space = *space});
  if (!outcome) return;
  if (*outcome == Transferred::kDone) {
    context.NotifyIn(*space, kNewEvent, "new", arguments[1]);
    context.Notify(kGenericEvent, "move_from", arguments[1]);
    context.NotifyIn(*space, kGenericEvent, "move_to", arguments[1]);
  }
  context.reply.Integer(*outcome == Transferred::kDone ? 1 : 0);
}

void HandleRandomKey(CommandContext& context, Arguments arguments) {
  SequenceNumber durable_after = kNoSequence;
  const absl::StatusOr<std::optional<std::string>> key =
      RandomKey(context.store, context.space(), SelectVisible(context, arguments, KeyRange()),
                &durable_after);
  context.DependOn(durable_after);
  if (!key.ok()) return context.Fail(key.status());
  key->has_value() ? context.reply.Bulk(**key) : context.reply.Null();
}

void HandleKeys(CommandContext& context, Arguments arguments) {
  const std::string_view pattern = arguments[1];
  context.Stream(std::make_unique<RangeStream>(
      SelectVisible(context, arguments, PrefixRange(GlobPrefix(pattern))),
      RangeOptions{.keys_only = true, .pattern = pattern}));
}

// As Redis reads it: anything that strtoull takes to its end, without blanks before it.
bool ParseCursor(std::string_view text, uint64_t* cursor) {
  const std::string terminated(text);
  if (!text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'))) return false;
  char* end = nullptr;
  errno = 0;
  *cursor = std::strtoull(terminated.c_str(), &end, 10);
  return errno != ERANGE && end == terminated.c_str() + terminated.size();
}

void HandleScan(CommandContext& context, Arguments arguments) {
  ScanRequest request;
  if (!ParseCursor(arguments[1], &request.cursor)) return context.reply.Error("ERR invalid cursor");
  bool strings = true;
  for (size_t i = 2; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return ReplySyntaxError(context);
    const std::string_view argument = arguments[i + 1];
    if (EqualsIgnoreCase(arguments[i], "count")) {
      int64_t count = 0;
      if (!ParseRespInteger(argument, &count)) return context.reply.Error(kNoInteger);
      if (count < 1) return ReplySyntaxError(context);
      request.count = static_cast<uint64_t>(count);
    } else if (EqualsIgnoreCase(arguments[i], "match")) {
      request.pattern = argument;
    } else if (EqualsIgnoreCase(arguments[i], "type")) {
      strings = EqualsIgnoreCase(argument, "string");
    } else {
      return ReplySyntaxError(context);
    }
  }
  if (!strings) {  // there are no others
    context.reply.Array(2);
    context.reply.Bulk("0");
    return context.reply.Array(0);
  }
  if (request.cursor != 0) {
    std::optional<std::string> begin =
        context.server.scan_cursors.Find(request.cursor, context.client.rights.user().identity);
    if (!begin) {
      return context.reply.Error(
          "ERR invalid cursor: the server has restarted since, the scan was left for too long, or "
          "another server gave the cursor; begin again with 0");
    }
    request.begin = *std::move(begin);
  }
  context.Stream(std::make_unique<ScanStream>(request, context, arguments));
}

// What Redis would call its way to keep such a value.
std::string_view EncodingName(std::string_view value) {
  constexpr size_t kLongestEmbedded = 44;
  int64_t number = 0;
  if (ParseRespInteger(value, &number)) return "int";
  return value.size() <= kLongestEmbedded ? "embstr" : "raw";
}

// Redis shares the numbers below 10,000 among all keys and says so.
int64_t ReferenceCount(std::string_view value) {
  constexpr int64_t kSharedBelow = 10'000;
  int64_t number = 0;
  return ParseRespInteger(value, &number) && number >= 0 && number < kSharedBelow ? INT32_MAX : 1;
}

void HandleObject(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  // The evictor may evict meanwhile, and answers once it is between two steps.
  if ((what == "freq" || what == "idletime") && context.NeedsPoolFor(SIZE_MAX)) return;
  // As in Redis, a look at the state of a key that is missing publishes no event.
  std::string value;
  const absl::StatusOr<ReadResult> read = context.Get(arguments[2], &value);
  if (!read.ok()) return context.Fail(read.status());
  context.DependOn(read->durable_after);
  (read->found ? context.server.statistics.keyspace_hits
               : context.server.statistics.keyspace_misses)
      .Add(1);
  if (!read->found) return context.reply.Null();
  if (what == "encoding") return context.reply.Bulk(EncodingName(value));
  if (what == "refcount") return context.reply.Integer(ReferenceCount(value));
  const Evictor::Use use = context.server.evictor.LookUp(context.space(), arguments[2], *read);
  const bool is_by_frequency = use.order == EvictionOrder::kLfu;
  if (what == "freq" && is_by_frequency) return context.reply.Integer(use.frequency);
  if (what == "idletime" && !is_by_frequency) {
    constexpr uint64_t kSecond = 1000;
    return context.reply.Integer(static_cast<int64_t>(use.idle_ms / kSecond));
  }
  if (is_by_frequency) {
    return context.reply.Error(
        "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when "
        "switching between policies at runtime LRU and LFU data will take some time to adjust.");
  }
  context.reply.Error(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching "
      "between "
      "policies at runtime LRU and LFU data will take some time to adjust.");
}

constexpr Command kKeyRows[] = {
    {.name = "copy",
     .arity = -3,
     .flags = kWriteCommand,
     .keys = {.first = 1, .last = 2, .step = 1},
     .handler = HandleCopy,
     .group = "generic",
     .summary = "Gives the value of a key to another key, too.",
     .syntax = "source destination [DB destination-db] [REPLACE]",
     .complexity = "O(M) for M bytes of the value",
     .redis = {.flags = "denyoom"}},
    {.name = "keys",
     .arity = 2,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandleKeys, 2>,
     .group = "generic",
     .summary = "Lists the keys that match a pattern, in order.",
     .syntax = "pattern [AT version|AT TIME ms|AT AGO seconds]",
     .complexity =
         "O(log(S) + N) for S keys in the database and N keys that begin as the pattern does",
     .redis = {.tips = "request_policy:all_shards nondeterministic_output_order",
               .categories = "@dangerous"}},
    {.name = "move",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleMove,
     .group = "generic",
     .summary = "Moves a key to another database that has none of this name.",
     .syntax = "key db",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "object",
     .arity = -2,
     .flags = kReadCommand | kContainerCommand,
     .keys = {.first = 2, .last = 2, .step = 1},
     .handler = HandleObject,
     .group = "generic",
     .summary = "Answers what Redis would say of how a value is kept.",
     .syntax = "ENCODING | FREQ | IDLETIME | REFCOUNT | HELP"},
    {.name = "randomkey",
     .arity = 1,
     .flags = kReadCommand | kSlowCommand,
     .handler = HandleRandomKey,
     .group = "generic",
     .summary = "Answers a key at random.",
     .complexity = "O(L * log(S)) for S keys in the database and keys of at most L bytes",
     .redis = {.tips = "request_policy:all_shards nondeterministic_output"}},
    {.name = "rename",
     .arity = 3,
     .flags = kWriteCommand,
     .keys = {.first = 1, .last = 2, .step = 1},
     .handler = HandleRename,
     .group = "generic",
     .summary = "Gives a key another name, in the place of what had it.",
     .syntax = "key newkey",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "renamenx",
     .arity = 3,
     .flags = kWriteCommand | kFastCommand,
     .keys = {.first = 1, .last = 2, .step = 1},
     .handler = HandleRenameNx,
     .group = "generic",
     .summary = "Gives a key another name that no key has.",
     .syntax = "key newkey",
     .complexity = "O(M) for M bytes of the value"},
    {.name = "scan",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand | kPastCommand,
     .handler = NowOrAt<HandleScan, 2>,
     .group = "generic",
     .summary = "Lists some keys, in order, and a cursor for the next ones.",
     .syntax =
         "cursor [MATCH pattern] [COUNT count] [TYPE type] [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) a call for S keys in the database and N keys looked at; as many "
                   "as there are keys for all calls",
     .redis = {.tips = "nondeterministic_output request_policy:special"}},
    {.name = "type",
     .arity = 2,
     .flags = kReadCommand | kFastCommand,
     .keys = kOneKey,
     .handler = HandleType,
     .group = "generic",
     .summary = "Answers string, or none for a missing key.",
     .syntax = "key",
     .complexity = "O(1)",
     .redis = {.key_flags = "RO"}},
};

}  // namespace

absl::Span<const Command> KeyCommands() { return kKeyRows; }

}  // namespace varve
