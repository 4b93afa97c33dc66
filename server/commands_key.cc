// Commands on single keys and lists of keys.
#include <algorithm>
#include <string>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_table.h"
#include "server/key_update.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

// Keys that a long MGET reads at a time.
constexpr size_t kKeysPerSlice = 64;
// Keys that a long DEL deletes at one instant: one that is written meanwhile makes it try that many again.
constexpr size_t kKeysPerUpdate = 64;
// Bytes of a value's memory that are worth keeping for the next one.
constexpr size_t kKeptValue = 64u << 10;

struct SetOptions {
  bool only_if_missing = false;
  bool only_if_present = false;
  bool get = false;
};

// Answers an error and returns false when the options can't be followed.
bool ParseSetOptions(CommandContext& context, Arguments options, SetOptions* parsed) {
  for (const std::string_view option : options) {
    if (EqualsIgnoreCase(option, "nx") && !parsed->only_if_present) {
      parsed->only_if_missing = true;
    } else if (EqualsIgnoreCase(option, "xx") && !parsed->only_if_missing) {
      parsed->only_if_present = true;
    } else if (EqualsIgnoreCase(option, "get")) {
      parsed->get = true;
    } else if (EqualsIgnoreCase(option, "ex") || EqualsIgnoreCase(option, "px") || EqualsIgnoreCase(option, "exat") ||
               EqualsIgnoreCase(option, "pxat") || EqualsIgnoreCase(option, "keepttl")) {
      context.reply.Error("ERR expiry is not supported: SET takes NX, XX and GET");
      return false;
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

// A long MGET, read in slices at one snapshot.
class MGetStream : public ReplyStream {
 public:
  // `keys` stay in place until the batch is done.
  MGetStream(CommandContext& context, Arguments keys)
      : snapshot_(context.store.GetSnapshot()), keys_(keys), results_(std::min(kKeysPerSlice, keys.size())) {
    context.reply.Array(keys.size());
  }

  Progress Produce(CommandContext& context, size_t budget) override {
    ReadOptions options = GatedReads();
    options.snapshot = snapshot_.get();
    const size_t full = context.reply.buffer()->size() + budget;
    while (next_ < keys_.size() && context.reply.buffer()->size() < full) {
      const Arguments slice = keys_.subspan(next_, kKeysPerSlice);
      absl::Span<MultiGetResult> results = absl::MakeSpan(results_).first(slice.size());
      const absl::Status status = context.store.MultiGet(options, slice, results);
      if (status.ok()) results = results.first(CountRead(results));
      for (MultiGetResult& result : results) {
        const absl::Status& failed = !status.ok() ? status : result.status;
        if (!failed.ok()) {
          context.Fail(failed);  // in the place of this one value
        } else if (result.result.found) {
          context.reply.Bulk(result.value);
        } else {
          context.reply.Null();
        }
        context.DependOn(result.result.gate);
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

void HandleGet(CommandContext& context, Arguments arguments) {
  thread_local std::string value;  // keeps its memory from one request to the next
  const absl::StatusOr<ReadResult> read = context.store.Get(GatedRead(), arguments[1], &value);
  if (!read.ok()) return context.Fail(read.status());
  context.DependOn(read->gate);
  if (!read->found) return context.reply.Null();
  context.reply.Bulk(value);
  if (value.capacity() > kKeptValue) std::string().swap(value);
}

void HandleSet(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  const std::string_view value = arguments[2];
  SetOptions options;
  if (!ParseSetOptions(context, arguments.subspan(3), &options)) return;
  if (arguments.size() == 3) {
    WriteBatch& batch = ClearedBatch();
    batch.Put(key, value);
    if (context.Submit(&batch)) context.reply.Ok();
    return;
  }
  bool existed = false;
  bool written = false;
  std::string old;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &old, batch);
    if (!read.ok()) return read.status();
    existed = read->found;
    written = !(options.only_if_missing && existed) && !(options.only_if_present && !existed);
    if (written) batch->Put(key, value);
    return absl::OkStatus();
  });
  if (!done) return;
  if (options.get) return existed ? context.reply.Bulk(old) : context.reply.Null();
  if (!written) return context.reply.Null();
  context.reply.Ok();
}

void HandleMGet(CommandContext& context, Arguments arguments) {
  context.Stream(std::make_unique<MGetStream>(context, arguments.subspan(1)));
}

void HandleMSet(CommandContext& context, Arguments arguments) {
  if (arguments.size() % 2 == 0) return ReplyWrongArity(context, "mset");
  WriteBatch& batch = ClearedBatch();
  for (size_t i = 1; i < arguments.size(); i += 2) batch.Put(arguments[i], arguments[i + 1]);
  if (context.Submit(&batch)) context.reply.Ok();
}

void HandleDel(CommandContext& context, Arguments arguments) {
  const Arguments keys = arguments.subspan(1);
  std::vector<std::string_view> distinct(keys.begin(), keys.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  int64_t deleted = 0;
  std::string value;
  for (size_t next = 0; next < distinct.size(); next += kKeysPerUpdate) {
    const Arguments part = Arguments(distinct).subspan(next, kKeysPerUpdate);
    int64_t found = 0;
    const bool done = Update(context, part, [&](WriteBatch* batch) -> absl::Status {
      found = 0;
      for (const std::string_view key : part) {
        const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
        if (!read.ok()) return read.status();
        if (!read->found) continue;
        batch->Delete(key);
        ++found;
      }
      return absl::OkStatus();
    });
    if (!done) return;
    deleted += found;
  }
  context.reply.Integer(deleted);
}

void HandleExists(CommandContext& context, Arguments arguments) {
  const Arguments keys = arguments.subspan(1);
  std::vector<MultiGetResult> results(std::min(keys.size(), kKeysPerSlice));
  const std::shared_ptr<const Snapshot> snapshot = keys.size() > 1 ? context.store.GetSnapshot() : nullptr;
  ReadOptions options = GatedReads();
  options.snapshot = snapshot.get();
  int64_t found = 0;
  for (size_t next = 0; next < keys.size();) {
    const Arguments slice = keys.subspan(next, kKeysPerSlice);
    const absl::Span<MultiGetResult> part = absl::MakeSpan(results).first(slice.size());
    const absl::Status status = context.store.MultiGet(options, slice, part);
    if (!status.ok()) return context.Fail(status);
    const size_t read = CountRead(part);
    next += read;
    for (MultiGetResult& result : part.first(read)) {
      if (!result.status.ok()) return context.Fail(result.status);
      context.DependOn(result.result.gate);
      found += result.result.found ? 1 : 0;
      if (result.value.capacity() > kKeptValue) std::string().swap(result.value);
    }
  }
  context.reply.Integer(found);
}

void HandleIncr(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  int64_t number = 0;
  std::string value;
  std::string_view refused;
  const bool done = Update(context, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
    refused = {};
    number = 0;
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    if (read->found && !ParseRespInteger(value, &number)) {
      refused = "ERR value is not an integer or out of range";
    } else if (number == INT64_MAX) {
      refused = "ERR increment or decrement would overflow";
    } else {
      batch->Put(key, fmt::to_string(++number));
    }
    return absl::OkStatus();
  });
  if (!done) return;
  if (!refused.empty()) return context.reply.Error(refused);
  context.reply.Integer(number);
}

}  // namespace

absl::Span<const Command> KeyCommands() {
  static constexpr Command kRows[] = {
      {"del", -2, kWriteCommand, 1, -1, 1, CommandKind::kOther, HandleDel, "key",
       "Deletes keys; answers how many there were.", "key [key ...]"},
      {"delete", -2, kWriteCommand, 1, -1, 1, CommandKind::kOther, HandleDel, "key", "The same as DEL.",
       "key [key ...]"},
      {"exists", -2, kReadCommand | kFastCommand, 1, -1, 1, CommandKind::kOther, HandleExists, "key",
       "Counts how many of the keys exist.", "key [key ...]"},
      {"get", 2, kReadCommand | kFastCommand, 1, 1, 1, CommandKind::kGet, HandleGet, "key", "Reads the value of a key.",
       "key"},
      {"incr", 2, kWriteCommand | kFastCommand, 1, 1, 1, CommandKind::kOther, HandleIncr, "key",
       "Adds one to the integer value of a key.", "key"},
      {"mget", -2, kReadCommand | kFastCommand, 1, -1, 1, CommandKind::kOther, HandleMGet, "key",
       "Reads the values of several keys at one instant.", "key [key ...]"},
      {"mset", -3, kWriteCommand, 1, -1, 2, CommandKind::kOther, HandleMSet, "key", "Writes several keys, all or none.",
       "key value [key value ...]"},
      {"put", -3, kWriteCommand, 1, 1, 1, CommandKind::kSet, HandleSet, "key", "The same as SET.",
       "key value [NX | XX] [GET]"},
      {"set", -3, kWriteCommand, 1, 1, 1, CommandKind::kSet, HandleSet, "key", "Writes the value of a key.",
       "key value [NX | XX] [GET]"},
  };
  return kRows;
}

}  // namespace varve
