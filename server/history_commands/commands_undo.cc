// Commands that look at what a key had, and bring back what was deleted: HISTORY, UNDELETE.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/clients/client_tracking.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/key_update.h"
#include "server/feed/visible_changes.h"
#include "server/past/past_read.h"
#include "server/requests/undelete_request.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr size_t kMostEvents = size_t{1} << 20;
constexpr size_t kMostKeys = kMaxBatchOperations;
constexpr size_t kMostBytes = kMaxBatchBytes / 2;
constexpr int kTriesTogether = 8;  // before other writers have to wait

// --- HISTORY -------------------------------------------------------------------------------------

class HistoryStream final : public ReplyStream {
 public:
  explicit HistoryStream(std::vector<KeyEvent> events) : events_(std::move(events)) {}

  Progress Produce(CommandContext& context, size_t budget) override {
    const size_t begin = context.reply.buffer()->size();
    if (next_ == 0) context.reply.Array(events_.size());
    for (; next_ < events_.size(); ++next_) {
      if (context.reply.buffer()->size() - begin >= budget) return Progress::kMore;
      const KeyEvent& event = events_[next_];
      context.reply.Array(5);
      context.reply.Integer(static_cast<int64_t>(event.version));
      context.reply.Integer(static_cast<int64_t>(event.instant_ms));
      context.reply.Bulk(ChangeWord(event.kind));
      context.reply.Integer(static_cast<int64_t>(event.value_size));
      context.reply.Integer(static_cast<int64_t>(event.expiry_ms));
    }
    return Progress::kDone;
  }

 private:
  const std::vector<KeyEvent> events_;
  size_t next_ = 0;
};

// Answers one event, below_horizon, at the oldest version that can be read: what was done to the
// key lies before it. A key that never was there has no event.
void ReplyBelowHorizon(CommandContext& context) {
  const absl::StatusOr<SequenceNumber> first = context.server.store->FirstVersion(context.space());
  if (!first.ok()) return context.Fail(first.status());
  context.reply.Array(1);
  context.reply.Array(5);
  context.reply.Integer(static_cast<int64_t>(*first));
  context.reply.Integer(static_cast<int64_t>(context.server.store->InstantOf(*first).value_or(0)));
  context.reply.Bulk("below_horizon");
  context.reply.Integer(0);
  context.reply.Integer(0);
}

// HISTORY key [COUNT n]
void HandleHistory(CommandContext& context, Arguments arguments) {
  int64_t count = kMostEvents;
  if (arguments.size() != 2) {
    if (arguments.size() != 4 || !EqualsIgnoreCase(arguments[2], "count"))
      return ReplySyntaxError(context);
    if (!ParseRespInteger(arguments[3], &count) || count < 1 ||
        count > static_cast<int64_t>(kMostEvents)) {
      return context.reply.Error(fmt::format("ERR COUNT is between 1 and {}", kMostEvents));
    }
  }
  // What EXEC has written so far has no version yet.
  const bool is_now = &context.store == context.server.store;
  const std::shared_ptr<const Snapshot> snapshot = is_now ? nullptr : context.store.GetSnapshot();
  absl::StatusOr<KeyHistory> history = context.server.store->HistoryOf(
      context.space(), arguments[1], static_cast<size_t>(count), snapshot.get());
  if (!history.ok()) return context.Fail(history.status());
  if (history->more && arguments.size() == 2) {
    return context.reply.Error(fmt::format(
        "ERR the key was changed more than {} times: ask for fewer with COUNT", kMostEvents));
  }
  context.DependOn(history->durable_after);
  if (history->events.empty() && history->state == KeyState::kBelowHorizon)
    return ReplyBelowHorizon(context);
  context.Stream(std::make_unique<HistoryStream>(std::move(history->events)));
}

// --- UNDELETE ------------------------------------------------------------------------------------

absl::Status TooManyKeys() {
  return absl::OutOfRangeError(
      fmt::format("more than {} keys or {} bytes would come back in one step: NAMESPACE CLONE "
                  "source name AT ... brings back any number of them",
                  kMostKeys, kMostBytes));
}

// Finds what was there at `point` and is missing now.
absl::StatusOr<RemovedKeys> FindMissingSince(CommandContext& context, const KeyRange& range,
                                             const PastPoint& point) {
  VARVE_ASSIGN_OR_RETURN(const std::shared_ptr<const Snapshot> then, SnapshotOf(context, point));
  const std::shared_ptr<const Snapshot> now = context.store.GetSnapshot();
  RemovedKeys found;
  found.read_sequence = now->sequence();
  ReadOptions options = NoWaitReadOptions(context.space());
  options.snapshot = then.get();
  options.with_metadata = true;
  const std::unique_ptr<Iterator> old = context.server.store->NewIterator(
      options, range.lower, range.upper, /*durable_after=*/nullptr);
  // A transaction's iterator shows what it has written, too.
  options.snapshot = context.in_transaction() ? nullptr : now.get();
  options.without_value = true;
  const std::unique_ptr<Iterator> present =
      context.store.NewIterator(options, range.lower, range.upper, &found.durable_after);
  const uint64_t now_ms = context.store.NowMillis();
  size_t bytes = 0;
  present->SeekToFirst();
  for (old->SeekToFirst(); old->Valid(); old->Next()) {
    if (present->Valid() && present->key() < old->key()) present->Seek(old->key());
    VARVE_RETURN_IF_ERROR(present->status());
    if (present->Valid() && present->key() == old->key()) continue;
    if (old->expiry_ms() != kNoExpiry && old->expiry_ms() <= now_ms) continue;
    bytes += old->key().size() + old->value().size();
    if (found.keys.size() == kMostKeys || bytes > kMostBytes) return TooManyKeys();
    found.keys.push_back({.key = std::string(old->key()),
                          .value = std::string(old->value()),
                          .metadata = std::string(old->metadata()),
                          .expiry_ms = old->expiry_ms(),
                          .version = old->version()});
  }
  VARVE_RETURN_IF_ERROR(old->status());
  found.durable_after = std::max(found.durable_after, present->durable_after());
  return found;
}

absl::StatusOr<RemovedKeys> FindMissing(CommandContext& context, const UndeleteRequest& undelete,
                                        const std::optional<PastPoint>& point) {
  if (undelete.range.empty) return RemovedKeys();
  if (point) return FindMissingSince(context, undelete.range, *point);
  absl::StatusOr<RemovedKeys> found = context.server.store->FindRemoved(
      {.space = context.space(),
       .lower = undelete.range.lower,
       .upper = undelete.range.upper,
       .also_present = undelete.is_key && context.in_transaction(),
       .most_keys = kMostKeys,
       .most_bytes = kMostBytes});
  if (absl::IsOutOfRange(found.status())) return TooManyKeys();
  if (!found.ok() || !context.in_transaction()) return found;
  // What the transaction has put meanwhile is there.
  std::vector<RemovedKey> missing;
  std::string none;
  for (RemovedKey& key : found->keys) {
    ReadOptions options = NoWaitReadOptions(context.space());
    options.without_value = true;
    VARVE_ASSIGN_OR_RETURN(const ReadResult read, context.store.Get(options, key.key, &none));
    if (!read.found) missing.push_back(std::move(key));
  }
  found->keys = std::move(missing);
  return found;
}

// Puts the keys into the batch, and drops their values from `found`.
void PutAgain(const CommandContext& context, RemovedKeys* found, WriteBatch* batch) {
  for (RemovedKey& key : found->keys) {
    if (!context.in_transaction())
      batch->RequireNotPut(key.key, found->read_sequence, context.space());
    batch->Put(key.key, key.value, {.expiry_ms = key.expiry_ms, .metadata = key.metadata});
    std::string().swap(key.value);
  }
}

absl::StatusOr<CommitResult> CommitAgain(CommandContext& context, const ExclusiveWrite* exclusive,
                                         WriteBatch* batch) {
  if (context.in_transaction()) return context.Commit(batch);
  WriteOptions options = context.write_options();
  options.exclusive_write = exclusive;
  TrackedWrite write(&context.server.clients.tracking);
  write.Note(*batch);
  absl::StatusOr<CommitResult> committed =
      context.WriteWithRoom(context.server.evictor.NeedOf(*batch), options,
                            [&] { return context.store.Submit(options, batch); });
  if (committed.ok()) context.NoteChange(*committed);
  if (MayBeVisible(committed.status())) write.Tell(context.client.id);
  return committed;
}

// UNDELETE key|PREFIX prefix|RANGE min max [AT version|AT TIME ms|AT AGO seconds]
void HandleUndelete(CommandContext& context, Arguments arguments) {
  const std::optional<UndeleteRequest> undelete = ParseUndelete(arguments);
  if (!undelete) return ReplySyntaxError(context);
  std::optional<PastPoint> point;
  if (undelete->words < arguments.size()) {
    const absl::StatusOr<PastPoint> parsed = ParsePastPoint(arguments.subspan(undelete->words + 1));
    if (!parsed.ok()) return context.Fail(parsed.status());
    point = *parsed;
  }
  std::unique_ptr<ExclusiveWrite> exclusive;
  for (int tries = 0;; ++tries) {
    if (tries == kTriesTogether) exclusive = context.store.BeginExclusiveWrite();
    absl::StatusOr<RemovedKeys> found = FindMissing(context, *undelete, point);
    if (!found.ok()) return context.Fail(found.status());
    context.DependOn(found->durable_after);
    if (found->keys.empty()) return context.reply.Integer(0);
    WriteBatch& batch = ClearedBatch(context);
    PutAgain(context, &*found, &batch);
    const absl::StatusOr<CommitResult> committed = CommitAgain(context, exclusive.get(), &batch);
    if (absl::IsAborted(committed.status()) && exclusive == nullptr) continue;
    if (!committed.ok()) return context.Fail(committed.status());
    context.Submitted();
    context.DependOn(committed->durable_after);
    for (const RemovedKey& key : found->keys)
      context.NotifyWritten("set", key.key, /*existed=*/false);
    return context.reply.Integer(static_cast<int64_t>(found->keys.size()));
  }
}

constexpr Command kUndoRows[] = {
    {.name = "history",
     .arity = -2,
     .flags = kReadCommand | kSlowCommand,
     .keys = kOneKey,
     .handler = HandleHistory,
     .group = "generic",
     .summary = "Lists what was done to a key, newest first, as far back as the database or "
                "namespace keeps its versions.",
     .syntax = "key [COUNT n]",
     .complexity = "O(log(S) + N) for S keys in the database and N versions of the key"},
    {.name = "undelete",
     .arity = -2,
     .flags = kWriteCommand | kSlowCommand,
     .handler = HandleUndelete,
     .group = "generic",
     .summary = "Brings back keys that are missing, with the newest value that each had, or with "
                "that of a version or an instant.",
     .syntax = "key|PREFIX prefix|RANGE min max [AT version|AT TIME ms|AT AGO seconds]",
     .complexity = "O(log(S) + N) for S keys in the database and N versions of the keys in the "
                   "range",
     .redis = {.flags = "denyoom"}},
};

}  // namespace

absl::Span<const Command> UndoCommands() { return kUndoRows; }

}  // namespace varve
