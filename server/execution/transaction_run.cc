#include "server/execution/transaction_run.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "server/clients/client_tracking.h"
#include "server/execution/request_account.h"
#include "server/execution/rights_check.h"
#include "server/requests/command.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr int kTriesTogether = 8;  // before other writers have to wait
// A store that compares versions can't have others wait, so an EXEC tries so often, and pauses up
// to two to this power of milliseconds between two tries.
constexpr int kTriesByVersion = 200;
constexpr int kMostDoublings = 6;
// That executing a request counts for: then it is known what it took.
constexpr size_t kKeysPerRequest = 16;

// A lack of memory for the transaction ends as one for the attempt around it does.
StoreContents* ContentsOf(Transaction* transaction) {
  StoreContents* const contents = transaction->contents();
  if (contents == nullptr) throw std::bad_alloc();
  return contents;
}

// Sleeps for a while by chance, longer the more often the transaction was tried, so that those that
// write the same keys get out of each other's way.
void PauseBetweenTries(int tries) {
  thread_local std::minstd_rand random(std::random_device{}());
  const auto longest = std::chrono::microseconds(1000) * (1 << std::min(tries, kMostDoublings));
  std::uniform_int_distribution<int64_t> pick(0, longest.count());
  std::this_thread::sleep_for(std::chrono::microseconds(pick(random)));
}

}  // namespace

TransactionRun::Attempt::Attempt(CommandContext& context, const WriteOptions& options,
                                 ByteBuffer* replies)
    : protocol(context.client.protocol),
      space(context.client.space),
      space_name(context.client.space_name),
      transaction(context.server.store, {.write = options, .max_bytes = kMaxBatchBytes}),
      write(options),
      tracked(&context.server.clients.tracking),
      inner(&context.server, &context.client, replies, ContentsOf(&transaction)) {
  inner.set_tracked_write(&tracked);
}

void TransactionRun::Attempt::Undo() {
  inner.client.protocol = protocol;
  inner.client.UseNamespace(space, space_name);
}

TransactionRun::TransactionRun(ClientTransaction transaction, bool is_cached)
    : transaction_(std::move(transaction)), is_cached_(is_cached), repeatable_(Repeatable()) {}

bool TransactionRun::Repeatable() const {
  return std::all_of(
      transaction_.requests.begin(), transaction_.requests.end(), [](const QueuedRequest& request) {
        const uint32_t flags = request.command().flags;
        if ((flags & (kReadCommand | kWriteCommand)) != 0) return true;
        return (flags & (kPubSubCommand | kAdminCommand | kSecretArguments | kContainerCommand)) ==
               0;
      });
}

bool TransactionRun::ExecuteWhole(CommandContext& context) {
  const size_t slice = context.server.options.reply_slice_bytes;
  return Execute(context) && replies_.size() <= slice && Send(context, slice);
}

ReplyStream::Progress TransactionRun::Produce(CommandContext& context, size_t budget) {
  return Execute(context) && Send(context, budget) ? Progress::kDone : Progress::kMore;
}

bool TransactionRun::Execute(CommandContext& context) {
  if (executed_all_) return true;
  executed_all_ = ExecuteInside(context);
  if (executed_all_) {
    attempt_.reset();
    executed_ = {};
    transaction_ = ClientTransaction();
  }
  ShowMemory(context);
  return executed_all_;
}

bool TransactionRun::ExecuteInside(CommandContext& context) {
  if (tries_ == 0) deadline_ = context.store_deadline();
  const bool by_version = !context.server.store->capabilities().snapshots;
  const int together = !repeatable_ ? 0 : by_version ? kTriesByVersion : kTriesTogether;
  // What has expired is removed all the same.
  const int alone = by_version && repeatable_ ? 0 : std::max(together, 1);
  std::unique_ptr<ExclusiveWrite> exclusive;
  for (;;) {
    if (attempt_ == nullptr) {
      const bool is_late = tries_ > 0 && std::chrono::steady_clock::now() >= deadline_;
      if (tries_ == together + alone || is_late) {
        Answer(context).Error(LostRaceText(by_version));
        return true;
      }
      // A thread that may wait executes it.
      if (by_version && tries_ > 0 && context.server.store_waits.remote())
        PauseBetweenTries(tries_);
      if (tries_ >= together && exclusive == nullptr)
        exclusive = context.store.BeginExclusiveWrite();
      ++tries_;
      if (!Begin(context, exclusive.get())) return true;
    }
    const Step step = Advance(context, /*in_slices=*/exclusive == nullptr);
    if (step != Step::kConflict) return step == Step::kDone;
    attempt_.reset();
  }
}

std::string_view TransactionRun::LostRaceText(bool by_version) const {
  if (!by_version) return "ERR others kept writing what was read";
  if (!repeatable_) {
    return "UNAVAILABLE others wrote what was read: no key was written, but what does not concern "
           "keys, such as PUBLISH, was done";
  }
  return "UNAVAILABLE others kept writing what was read: nothing was done, and it may be tried "
         "again";
}

bool TransactionRun::Begin(CommandContext& context, const ExclusiveWrite* exclusive) {
  WriteOptions options;
  options.exclusive_write = exclusive;
  options.deadline = deadline_;
  replies_.Clear();
  executed_.clear();
  if (is_cached_ && context.client.modes.tracking.on) RememberQueuedReads(context);
  attempt_ = std::make_unique<Attempt>(context, options, &replies_);
  const absl::StatusOr<bool> same = WatchedAreSame(context, &attempt_->transaction, options);
  if (same.ok() && *same) {
    attempt_->inner.reply.Array(transaction_.requests.size());
    return true;
  }
  RespWriter reply = Answer(context);
  same.ok() ? reply.NullArray() : reply.Error(CommandContext::ErrorText(same.status()));
  return false;
}

void TransactionRun::RememberQueuedReads(CommandContext& context) const {
  for (const QueuedRequest& request : transaction_.requests) {
    RememberReads(&context.server.clients, &context.client, request.command(), request.arguments());
  }
}

void TransactionRun::TellTrackers(CommandContext& context) {
  KeyTracking& tracking = context.server.clients.tracking;
  if (attempt_->inner.submitted()) attempt_->tracked.Tell(context.client.id);
  // What was read was not noted before: in another database, or the transaction began to track.
  const bool tracks = context.client.modes.tracking.on;
  if (tracks && (attempt_->reads_elsewhere || !is_cached_))
    tracking.InvalidateAllOf(context.client);
}

absl::StatusOr<bool> TransactionRun::WatchedAreSame(CommandContext& context,
                                                    Transaction* transaction,
                                                    const WriteOptions& options) {
  WriteBatch conditions;
  bool conditional = false;
  std::string none;
  for (const WatchedKey& watched : transaction_.watched) {
    ReadOptions read_options = NoWaitReadOptions(watched.space);
    read_options.without_value = true;
    // One that was dropped meanwhile holds nothing, and nobody can write to it any more.
    if (!transaction->HasNamespace(watched.space)) {
      if (watched.found) return false;
      continue;
    }
    VARVE_ASSIGN_OR_RETURN(const ReadResult read,
                           transaction->Get(read_options, watched.key, &none));
    durable_after_ = std::max(durable_after_, read.durable_after);
    // The version tells two writes of the same value apart.
    if (read.found != watched.found || read.version != watched.version) return false;
    if (read.found) continue;
    conditions.RequireNotPut(
        watched.key, WriteBatch::ReadPoint(watched.read_sequence, watched.version), watched.space);
    conditional = true;
  }
  if (conditional) {
    const absl::Status not_put = context.store.Submit(options, &conditions).status();
    if (absl::IsAborted(not_put)) return false;
    VARVE_RETURN_IF_ERROR(not_put);
  }
  return WatchedRangesAreSame(transaction, options);
}

// The watches tell of changes up to the transaction's snapshot, and of some behind it; the commit
// finds the others.
absl::StatusOr<bool> TransactionRun::WatchedRangesAreSame(Transaction* transaction,
                                                          const WriteOptions& options) {
  for (const WatchedRange& watched : transaction_.watched_ranges) {
    if (!transaction->HasNamespace(watched.space)) return false;
    VARVE_ASSIGN_OR_RETURN(const bool changed,
                           watched.watch->Changed(options, transaction->snapshot()->instant_ms()));
    if (changed) return false;
    transaction->DependOnRange(watched.lower, watched.upper, watched.space);
  }
  return true;
}

TransactionRun::Step TransactionRun::Advance(CommandContext& context, bool in_slices) {
  Attempt& attempt = *attempt_;
  attempt.inner.CountTo(in_slices ? &context : nullptr);
  // A transaction that has failed is not executed to its end. A stream may hold an iterator of it.
  const auto may_go_on = [&] {
    return attempt.stream != nullptr || attempt.transaction.status().ok();
  };
  while (attempt.next < transaction_.requests.size() && may_go_on()) {
    const bool whole = ExecuteOne();
    if (replies_.size() > kMaxExecReplyBytes) {
      attempt.Undo();
      Answer(context).Error(fmt::format(
          "ERR the replies of this transaction take more than {} bytes, nothing was done",
          kMaxExecReplyBytes));
      return Step::kDone;
    }
    if (attempt.inner.SliceSpent(whole ? kKeysPerRequest : 1)) return Step::kSliceSpent;
  }
  return Commit(context);
}

bool TransactionRun::ExecuteOne() {
  Attempt& attempt = *attempt_;
  const auto since = std::chrono::steady_clock::now();
  if (attempt.stream == nullptr) {
    const QueuedRequest& request = transaction_.requests[attempt.next];
    attempt.begin = replies_.size();
    attempt.nanos = 0;
    attempt.reads_elsewhere =
        attempt.reads_elsewhere || (is_cached_ && attempt.inner.space() != attempt.space &&
                                    ReadsKeys(request.command(), request.arguments()));
    if (!RefusedAtExec(attempt.inner, request.command(), request.arguments())) {
      request.command().handler(attempt.inner, request.arguments());
      if (attempt.inner.server.clients.audit.on()) [[unlikely]]
        NoteExecuted(attempt.inner, request.command(), request.arguments());
    }
    attempt.stream = attempt.inner.TakeStream();
  }
  if (attempt.stream != nullptr) {
    const ReplyStream::Progress progress =
        attempt.stream->Produce(attempt.inner, kMaxExecReplyBytes);
    if (progress == ReplyStream::Progress::kBroken) {
      replies_.Truncate(attempt.begin);
      attempt.inner.reply.Error("ERR the keys can't be read to their end");
    }
    if (progress != ReplyStream::Progress::kMore) attempt.stream.reset();
  }
  const auto nanos = std::chrono::nanoseconds(std::chrono::steady_clock::now() - since).count();
  attempt.nanos += static_cast<uint64_t>(nanos);
  if (attempt.stream != nullptr) return false;
  executed_.push_back({attempt.nanos, attempt.begin, attempt.inner.space()});
  ++attempt.next;
  return true;
}

// What was evicted may be what the transaction has read; then it has lost a race and is executed
// anew, if it may be.
absl::StatusOr<CommitResult> TransactionRun::SubmitWithRoom(CommandContext& context) {
  Attempt& attempt = *attempt_;
  EvictionNeed need;
  return context.server.evictor.WriteWithRoom(need, attempt.write, [&] {
    absl::StatusOr<CommitResult> submitted = attempt.transaction.Submit();
    if (!submitted.ok() && context.server.evictor.MayMakeRoom(submitted.status())) {
      const std::optional<NamespaceQuota> full = FullQuota(submitted.status());
      const CountResult puts =
          attempt.transaction.CountPuts(full ? std::make_optional(full->space) : std::nullopt);
      need.bytes = puts.bytes;
      need.keys = puts.keys;
    }
    return submitted;
  });
}

TransactionRun::Step TransactionRun::Commit(CommandContext& context) {
  Attempt& attempt = *attempt_;
  const absl::StatusOr<CommitResult> committed = SubmitWithRoom(context);
  if (MayBeVisible(committed.status())) TellTrackers(context);
  if (!committed.ok()) attempt.Undo();
  if (absl::IsAborted(committed.status())) return Step::kConflict;
  if (attempt.inner.submitted()) context.Submitted();
  if (!committed.ok()) {
    const std::string error = CommandContext::ErrorText(committed.status());
    Answer(context).Error(IsStoreFull(committed.status())
                              ? "EXECABORT Transaction discarded because of: " + error
                              : error);
    return Step::kDone;
  }
  if (attempt.inner.changed()) context.NoteChange(*committed);
  durable_after_ =
      std::max({durable_after_, attempt.inner.TakeDurableAfter(), committed->durable_after});
  for (const auto& [one, other] : attempt.inner.swaps())
    context.server.evictor.NoteSwap(one, other);
  const bool may_tell = !attempt.inner.events().empty() && context.server.MayTell();
  for (const CommandContext::KeyEvent& told : attempt.inner.events()) {
    if (!may_tell) break;
    (void)context.SliceSpent(
        context.server.clients.events.Send(told.event, told.space, told.key, durable_after_));
  }
  context.reply.set_protocol(context.client.protocol);
  Account(context);
  return Step::kDone;
}

void TransactionRun::Account(CommandContext& context) const {
  ServerState& server = context.server;
  for (size_t i = 0; i < executed_.size(); ++i) {
    const QueuedRequest& request = transaction_.requests[i];
    const auto& [nanos, begin, space] = executed_[i];
    server.statistics.commands.Executed(request.command().index, 1, nanos);
    if (server.statistics.slow_log.Wants(nanos)) {
      AccountSlowRequest(&server, context.client, &request.command(), request.arguments(), nanos);
    }
    AccountReply(&server, &request.command(), replies_.view().substr(begin));
    if (server.clients.monitors.any()) {
      server.clients.monitors.Show(space, context.client.address, request.command(),
                                   request.arguments());
    }
  }
}

RespWriter TransactionRun::Answer(CommandContext& context) {
  replies_.Clear();
  return RespWriter(&replies_, context.client.protocol);
}

bool TransactionRun::Send(CommandContext& context, size_t budget) {
  context.DependOn(durable_after_);
  const size_t bytes = std::min(budget, replies_.size());
  context.reply.buffer()->Append(replies_.view().substr(0, bytes));
  replies_.Consume(bytes);
  ShowMemory(context);
  return replies_.empty();
}

void TransactionRun::ShowMemory(CommandContext& context) const {
  const size_t written = attempt_ != nullptr ? attempt_->transaction.bytes() : 0;
  const size_t bytes =
      transaction_.bytes() + executed_.size() * sizeof(Executed) + written + replies_.size();
  context.client.link.transaction_bytes.store(bytes, std::memory_order_relaxed);
}

}  // namespace varve
