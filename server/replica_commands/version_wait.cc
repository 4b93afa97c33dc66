#include "server/replica_commands/version_wait.h"

#include <algorithm>
#include <memory>

#include "fmt/format.h"
#include "server/status/replication_report.h"

namespace varve {

// --- Waiting -------------------------------------------------------------------------------------

VersionWait::VersionWait(std::chrono::milliseconds timeout) {
  if (timeout.count() > 0) until_ = std::chrono::steady_clock::now() + timeout;
}

VersionWait::~VersionWait() {
  if (disk_waiters_ != nullptr) disk_waiters_->EndDiskWait();
}

void VersionWait::WatchDisk(ChangeWaiters* waiters) {
  waiters->BeginDiskWait();
  disk_waiters_ = waiters;
}

bool VersionWait::MayWait(const CommandContext& context) const {
  return !context.in_transaction() && !context.client.link.Unblocked() &&
         !context.server.draining.load(std::memory_order_relaxed) &&
         (!until_ || std::chrono::steady_clock::now() < *until_);
}

ReplyStream::Progress VersionWait::Produce(CommandContext& context, size_t /*budget*/) {
  ChangeWaiters& waiters = context.server.clients.changes;
  uint64_t word = waiters.word();
  bool has_come = HasCome(context);
  if (!has_come && MayWait(context) && disk_waiters_ == nullptr) {
    WatchDisk(&waiters);
    word = waiters.word();
    has_come = HasCome(context);
  }
  if (!has_come && MayWait(context)) {
    context.AwaitChanges({.word = word, .until = until_});
    return Progress::kMore;
  }
  ClientLink& link = context.client.link;
  if (!has_come && link.blocked.load() == ClientLink::Blocked::kRefused) {
    context.reply.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
  } else {
    Answer(context, has_come);
  }
  waiters.EndBlock(&link);
  return Progress::kDone;
}

// --- On disk -------------------------------------------------------------------------------------

bool FollowerWait::HasCome(CommandContext& context) {
  followers_ = context.server.replication.followers.CountDurable(wanted_.version);
  local_ = context.server.store->durable_sequence() >= wanted_.version;
  return static_cast<int64_t>(followers_) >= wanted_.followers &&
         (local_ || !wanted_.local.value_or(false));
}

void FollowerWait::Answer(CommandContext& context, bool /*has_come*/) {
  context.DependOn(wanted_.durable_after);
  const auto followers = static_cast<int64_t>(followers_);
  if (!wanted_.local) return context.reply.Integer(followers);
  context.reply.Array(2);
  context.reply.Integer(local_ ? 1 : 0);
  context.reply.Integer(followers);
}

// --- Visible -------------------------------------------------------------------------------------

bool VisibleWait::HasCome(CommandContext& context) {
  Store& store = *context.server.store;
  const std::shared_ptr<const Snapshot> snapshot = store.GetSnapshot();
  if (snapshot->sequence() < version_) return false;
  if (store.durable_sequence() >= version_) return true;
  // A reader of all keys depends on the newest write that asks for a sync.
  ReadOptions options = NoWaitReadOptions(kDefaultNamespace);
  options.snapshot = snapshot.get();
  SequenceNumber durable_after = kNoSequence;
  (void)store.NewIterator(options, "", "", &durable_after);
  context.DependOn(std::min(durable_after, version_));
  return true;
}

void VisibleWait::Answer(CommandContext& context, bool has_come) {
  if (has_come) return context.reply.Ok();
  context.reply.Error(fmt::format("TIMEOUT this server has version {}, not {} yet",
                                  NewestVersion(context.server), version_));
}

}  // namespace varve
