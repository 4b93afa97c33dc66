// Commands on lists of keys.
#include <algorithm>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"
#include "varve/key_group.h"

namespace varve {
namespace {

// Keys that a long MGET reads at a time.
constexpr size_t kKeysPerSlice = 64;
// Keys that a long DEL deletes at one instant: one that is written meanwhile makes it try that many
// again.
constexpr size_t kKeysPerUpdate = 64;
// Bytes of a value's memory that are worth keeping for the next one.
constexpr size_t kKeptValue = 64u << 10;

// A long MGET, read in slices at one snapshot.
class MGetStream : public ReplyStream {
 public:
  // `keys` stay in place until the batch is done.
  MGetStream(CommandContext& context, Arguments keys)
      : snapshot_(SnapshotOfReply(context.store)),
        keys_(keys),
        results_(std::min(kKeysPerSlice, keys.size())) {
    context.reply.Array(keys.size());
  }

  Progress Produce(CommandContext& context, size_t budget) override {
    ReadOptions options = NoWaitMultiGetOptions(context.space(), context.max_value_bytes());
    options.snapshot = snapshot_.get();
    options.deadline = context.store_deadline();
    const size_t full = context.reply.buffer()->size() + budget;
    while (next_ < keys_.size() && context.reply.buffer()->size() < full) {
      const Arguments slice = keys_.subspan(next_, kKeysPerSlice);
      absl::Span<MultiGetResult> results = absl::MakeSpan(results_).first(slice.size());
      const absl::Status status = context.store.MultiGet(options, slice, results);
      if (status.ok()) results = results.first(CountRead(results));
      if (results.empty()) {
        context.MoveToPool();
        return Progress::kMore;
      }
      for (size_t i = 0; i < results.size(); ++i) {
        MultiGetResult& result = results[i];
        const absl::Status& failed = !status.ok() ? status : result.status;
        context.DependOn(result.result.durable_after);
        if (failed.ok()) NoteRead(context, slice[i], result.result);
        if (!failed.ok()) {
          context.Fail(failed);  // in the place of this one value
        } else if (result.result.found) {
          context.reply.Bulk(result.value);
        } else {
          context.reply.Null();
        }
        if (result.value.capacity() > kKeptValue) std::string().swap(result.value);
      }
      next_ += results.size();
    }
    return next_ == keys_.size() ? Progress::kDone : Progress::kMore;
  }

 private:
  const std::shared_ptr<const Snapshot> snapshot_;
  const Arguments keys_;
  std::vector<MultiGetResult> results_;
  size_t next_ = 0;
};

void HandleMGet(CommandContext& context, Arguments arguments) {
  context.Stream(std::make_unique<MGetStream>(context, arguments.subspan(1)));
}

using KeySet = absl::flat_hash_set<std::string_view>;

// `keys` were written, of which `present` had been there; one that is named twice is new once.
void NotifyPairs(CommandContext& context, Arguments keys, KeySet present) {
  if (!context.server.clients.events.Tells(kNewEvent) &&
      !context.server.clients.events.Tells(kStringEvent))
    return;
  for (const std::string_view key : keys)
    context.NotifyWritten("set", key, !present.insert(key).second);
}

// MSET where it is told which keys are new.
void SetAndLook(CommandContext& context, Arguments arguments) {
  std::vector<std::string_view> keys;
  for (size_t i = 1; i < arguments.size(); i += 2) keys.push_back(arguments[i]);
  KeySet present;
  std::string old;
  const bool done = Update(context, keys, [&](WriteBatch* batch) -> absl::Status {
    present.clear();
    for (const std::string_view key : keys) {
      const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &old, batch);
      if (!read.ok()) return read.status();
      if (read->found) present.insert(key);
    }
    for (size_t i = 1; i < arguments.size(); i += 2) batch->Put(arguments[i], arguments[i + 1]);
    return absl::OkStatus();
  });
  if (!done) return;
  NotifyPairs(context, keys, std::move(present));
  context.reply.Ok();
}

void HandleMSet(CommandContext& context, Arguments arguments) {
  if (arguments.size() % 2 == 0) return ReplyWrongArity(context, "mset");
  if (context.server.clients.events.Tells(kNewEvent)) return SetAndLook(context, arguments);
  WriteBatch& batch = ClearedBatch(context);
  for (size_t i = 1; i < arguments.size(); i += 2) batch.Put(arguments[i], arguments[i + 1]);
  if (!context.Submit(&batch)) return;
  for (size_t i = 1; i < arguments.size(); i += 2)
    context.Notify(kStringEvent, "set", arguments[i]);
  context.reply.Ok();
}

void HandleMSetNx(CommandContext& context, Arguments arguments) {
  if (arguments.size() % 2 == 0) return ReplyWrongArity(context, "msetnx");
  std::vector<std::string_view> keys;
  for (size_t i = 1; i < arguments.size(); i += 2) keys.push_back(arguments[i]);
  bool written = false;
  std::string value;
  const bool done = Update(context, keys, [&](WriteBatch* batch) -> absl::Status {
    written = false;
    for (const std::string_view key : keys) {
      const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
      if (!read.ok()) return read.status();
      if (read->found) return absl::OkStatus();
    }
    written = true;
    for (size_t i = 1; i < arguments.size(); i += 2) batch->Put(arguments[i], arguments[i + 1]);
    return absl::OkStatus();
  });
  if (!done) return;
  if (written) NotifyPairs(context, keys, {});
  context.reply.Integer(written ? 1 : 0);
}

// `deleted` is sorted; those who listen hear of them in the order of `keys`.
void NotifyDeleted(CommandContext& context, Arguments keys, Arguments deleted) {
  if (!context.server.clients.events.Tells(kGenericEvent)) return;
  KeySet left(deleted.begin(), deleted.end());
  for (const std::string_view key : keys) {
    if (left.erase(key) > 0) context.Notify(kGenericEvent, "del", key);
  }
}

// Returns how many of the sorted keys, from the first on, are deleted at one instant: of one group
// where keys have groups, which EXEC has seen to.
size_t KeysDeletedTogether(const CommandContext& context, Arguments keys) {
  const size_t most = std::min(keys.size(), kKeysPerUpdate);
  if (context.in_transaction()) return most;
  const std::optional<KeyGrouping> grouping = context.store.GroupsOf(context.space());
  if (!grouping) return most;
  size_t count = 1;
  while (count < most && GroupOf(*grouping, keys[count]) == GroupOf(*grouping, keys[0])) ++count;
  return count;
}

void HandleDel(CommandContext& context, Arguments arguments) {
  const Arguments keys = arguments.subspan(1);
  std::vector<std::string_view> distinct(keys.begin(), keys.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<std::string_view> deleted;  // in order
  std::string value;
  for (Arguments left = distinct, part; !left.empty(); left.remove_prefix(part.size())) {
    part = left.first(KeysDeletedTogether(context, left));
    const size_t before = deleted.size();
    const absl::Status status = TryUpdate(context, part, [&](WriteBatch* batch) -> absl::Status {
      deleted.resize(before);
      for (const std::string_view key : part) {
        const absl::StatusOr<ReadResult> read = ReadForDelete(context, key, &value, batch);
        if (!read.ok()) return read.status();
        if (!read->found) continue;
        batch->Delete(key);
        deleted.push_back(key);
      }
      return absl::OkStatus();
    });
    if (!status.ok()) {
      deleted.resize(before);
      const bool has_deleted = before > 0 && !context.in_transaction();
      context.Fail(status, has_deleted ? kOthersMayBeDeleted : "");
      return NotifyDeleted(context, keys, deleted);
    }
  }
  NotifyDeleted(context, keys, deleted);
  context.reply.Integer(static_cast<int64_t>(deleted.size()));
}

// Answers how many of the keys there are. `uses`: they are used by it, as in Redis also where the
// client's reads do not count as uses (CLIENT NO-TOUCH).
void CountKeys(CommandContext& context, Arguments arguments, bool uses) {
  const Arguments keys = arguments.subspan(1);
  std::vector<MultiGetResult> results(std::min(keys.size(), kKeysPerSlice));
  const std::shared_ptr<const Snapshot> snapshot =
      keys.size() > 1 ? SnapshotOfReply(context.store) : nullptr;
  ReadOptions options = NoWaitReadOptions(context.space());
  options.without_value = true;
  options.max_value_bytes = context.max_value_bytes();
  options.snapshot = snapshot.get();
  int64_t found = 0;
  for (size_t next = 0; next < keys.size(); next += kKeysPerSlice) {
    const Arguments slice = keys.subspan(next, kKeysPerSlice);
    const absl::Span<MultiGetResult> part = absl::MakeSpan(results).first(slice.size());
    const absl::Status status = context.store.MultiGet(options, slice, part);
    if (!status.ok()) return context.Fail(status);
    for (size_t i = 0; i < part.size(); ++i) {
      const MultiGetResult& result = part[i];
      if (!result.status.ok()) return context.Fail(result.status);
      if (result.result.too_large) return context.MoveToPool();
      context.DependOn(result.result.durable_after);
      context.CountLookup(slice[i], result.result.found);
      if (uses && result.result.found)
        context.server.evictor.NoteRead(context.space(), slice[i], result.result.version);
      found += result.result.found ? 1 : 0;
    }
  }
  context.reply.Integer(found);
}

void HandleExists(CommandContext& context, Arguments arguments) {
  CountKeys(context, arguments, /*uses=*/false);
}
void HandleTouch(CommandContext& context, Arguments arguments) {
  CountKeys(context, arguments, /*uses=*/true);
}

constexpr Command kKeyListRows[] = {
    {.name = "del",
     .arity = -2,
     .flags = kWriteCommand | kKeyByKeyCommand,
     .keys = kAllKeys,
     .kind = CommandKind::kDelete,
     .handler = HandleDel,
     .group = "generic",
     .summary = "Deletes keys; answers how many there were.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.tips = "request_policy:multi_shard response_policy:agg_sum",
               .key_flags = "RM delete"}},
    {.name = "delete",
     .arity = -2,
     .flags = kWriteCommand | kKeyByKeyCommand,
     .keys = kAllKeys,
     .kind = CommandKind::kDelete,
     .handler = HandleDel,
     .group = "generic",
     .summary = "The same as DEL.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.tips = "request_policy:multi_shard response_policy:agg_sum",
               .key_flags = "RM delete"}},
    {.name = "exists",
     .arity = -2,
     .flags = kReadCommand | kFastCommand,
     .keys = kAllKeys,
     .kind = CommandKind::kExists,
     .handler = HandleExists,
     .group = "generic",
     .summary = "Counts how many of the keys exist.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.tips = "request_policy:multi_shard response_policy:agg_sum", .key_flags = "RO"}},
    {.name = "mget",
     .arity = -2,
     .flags = kReadCommand | kFastCommand,
     .keys = kAllKeys,
     .kind = CommandKind::kMGet,
     .handler = HandleMGet,
     .group = "string",
     .summary = "Reads the values of several keys at one instant.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.tips = "request_policy:multi_shard"}},
    {.name = "mset",
     .arity = -3,
     .flags = kWriteCommand,
     .keys = {.first = 1, .last = -1, .step = 2},
     .handler = HandleMSet,
     .group = "string",
     .summary = "Writes several keys, all or none.",
     .syntax = "key value [key value ...]",
     .complexity = "O(N) for N keys",
     .redis = {.flags = "denyoom",
               .tips = "request_policy:multi_shard response_policy:all_succeeded",
               .key_flags = "OW update"}},
    {.name = "msetnx",
     .arity = -3,
     .flags = kWriteCommand,
     .keys = {.first = 1, .last = -1, .step = 2},
     .handler = HandleMSetNx,
     .group = "string",
     .summary = "Writes several keys if none of them exists.",
     .syntax = "key value [key value ...]",
     .complexity = "O(N) for N keys",
     .redis = {.flags = "denyoom",
               .tips = "request_policy:multi_shard response_policy:agg_min",
               .key_flags = "OW insert"}},
    {.name = "touch",
     .arity = -2,
     .flags = kReadCommand | kFastCommand,
     .keys = kAllKeys,
     .handler = HandleTouch,
     .group = "generic",
     .summary = "Counts keys that exist, and marks them as used for evictions.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.tips = "request_policy:multi_shard response_policy:agg_sum", .key_flags = "RO"}},
    {.name = "unlink",
     .arity = -2,
     .flags = kWriteCommand | kFastCommand | kKeyByKeyCommand,
     .keys = kAllKeys,
     .kind = CommandKind::kDelete,
     .handler = HandleDel,
     .group = "generic",
     .summary = "The same as DEL: memory is never freed while a client waits.",
     .syntax = "key [key ...]",
     .complexity = "O(N) for N keys",
     .redis = {.tips = "request_policy:multi_shard response_policy:agg_sum",
               .key_flags = "RM delete"}},
};

}  // namespace

absl::Span<const Command> KeyListCommands() { return kKeyListRows; }

}  // namespace varve
