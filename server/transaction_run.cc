#include "server/transaction_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "db/transaction_store.h"
#include "fmt/format.h"
#include "server/command_table.h"
#include "server/request_account.h"
#include "util/status.h"

namespace varve {
namespace {

constexpr int kTriesTogether = 8;  // before other writers have to wait

}  // namespace

bool TransactionRun::Repeatable() const {
  return std::all_of(transaction_.requests.begin(), transaction_.requests.end(), [](const QueuedRequest& request) {
    const uint32_t flags = request.command().flags;
    if ((flags & (kReadCommand | kWriteCommand)) != 0) return true;
    return (flags & (kPubSubCommand | kAdminCommand | kSecretArguments | kContainerCommand)) == 0;
  });
}

void TransactionRun::Execute() {
  const int tries = Repeatable() ? kTriesTogether : 0;
  for (int i = 0; i < tries; ++i) {
    if (Try(nullptr) == Outcome::kAnswered) return;
  }
  const std::unique_ptr<WriteTurn> turn = context_->store.TakeTurn();
  // What has expired is removed all the same.
  for (int i = 0; i < std::max(tries, 1); ++i) {
    if (Try(turn.get()) == Outcome::kAnswered) return;
  }
  context_->reply.Error("ERR others kept writing what was read");
}

absl::StatusOr<bool> TransactionRun::WatchedAreSame(Transaction* transaction, const WriteOptions& options) {
  WriteBatch conditions;
  bool conditional = false;
  std::string none;
  for (const WatchedKey& watched : transaction_.watched) {
    ReadOptions read_options = GatedRead(watched.space);
    read_options.without_value = true;
    // One that was dropped meanwhile holds nothing, and nobody can write to it any more.
    if (!transaction->HasNamespace(watched.space)) {
      if (watched.found) return false;
      continue;
    }
    VARVE_ASSIGN_OR_RETURN(const ReadResult read, transaction->Get(read_options, watched.key, &none));
    context_->DependOn(read.gate);
    // The version tells two writes of the same value apart.
    if (read.found != watched.found || read.version != watched.version) return false;
    if (read.found) continue;
    conditions.RequireNotPut(watched.key, watched.read_sequence, watched.space);
    conditional = true;
  }
  if (!conditional) return true;
  const absl::Status not_put = context_->store.Submit(options, &conditions).status();
  if (absl::IsAborted(not_put)) return false;
  VARVE_RETURN_IF_ERROR(not_put);
  return true;
}

TransactionRun::Outcome TransactionRun::Try(const WriteTurn* turn) {
  ClientState& client = context_->client;
  const int protocol = client.protocol;
  const NamespaceId space = client.space;
  WriteOptions options;
  options.turn = turn;
  Transaction transaction(&context_->store, {.write = options, .max_bytes = kMaxBatchBytes});
  const absl::StatusOr<bool> same = WatchedAreSame(&transaction, options);
  if (!same.ok() || !*same) {
    same.ok() ? context_->reply.NullArray() : context_->Fail(same.status());
    return Outcome::kAnswered;
  }
  TransactionStore inside(&context_->store, &transaction);
  replies_.Clear();
  executed_.clear();
  CommandContext inner(&context_->server, &client, &replies_, &inside);
  inner.reply.Array(transaction_.requests.size());
  for (const QueuedRequest& request : transaction_.requests) {
    ExecuteOne(inner, request);
    if (replies_.size() > kMaxExecReplyBytes) {
      client.protocol = protocol;
      client.UseNamespace(space);
      context_->reply.Error(fmt::format("ERR the replies of this transaction take more than {} bytes, nothing was done",
                                        kMaxExecReplyBytes));
      return Outcome::kAnswered;
    }
  }
  const absl::StatusOr<CommitResult> committed = transaction.Submit();
  if (!committed.ok()) {  // nothing has happened, also not to the connection
    client.protocol = protocol;
    client.UseNamespace(space);
  }
  if (absl::IsAborted(committed.status())) return Outcome::kConflict;
  if (inner.submitted()) context_->Submitted();
  if (!committed.ok()) {
    context_->Fail(committed.status());
    return Outcome::kAnswered;
  }
  context_->DependOn(inner.TakeGate());
  context_->DependOn(committed->gate);
  const bool may_tell = !inner.events().empty() && context_->server.MayTell();
  for (const CommandContext::KeyEvent& told : inner.events()) {
    if (!may_tell) break;
    (void)context_->SliceSpent(context_->server.events.Send(told.event, told.space, told.key, context_->gate()));
  }
  context_->reply.buffer()->Append(replies_.view());
  context_->reply.set_protocol(client.protocol);
  Account();
  return Outcome::kAnswered;
}

void TransactionRun::ExecuteOne(CommandContext& inner, const QueuedRequest& request) {
  const auto begin = std::chrono::steady_clock::now();
  const size_t before = replies_.size();
  const NamespaceId space = inner.space();
  request.command().handler(inner, request.arguments());
  for (std::unique_ptr<ReplyStream> stream = inner.TakeStream(); stream != nullptr;) {
    const ReplyStream::Progress progress = stream->Produce(inner, kMaxExecReplyBytes);
    if (progress == ReplyStream::Progress::kBroken) {
      replies_.Truncate(before);
      inner.reply.Error("ERR the keys can't be read to their end");
    }
    if (progress != ReplyStream::Progress::kMore || replies_.size() > kMaxExecReplyBytes) stream.reset();
  }
  const auto nanos = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  executed_.push_back({static_cast<uint64_t>(nanos), before, space});
}

void TransactionRun::Account() const {
  ServerState& server = context_->server;
  for (size_t i = 0; i < executed_.size(); ++i) {
    const QueuedRequest& request = transaction_.requests[i];
    const auto& [nanos, begin, space] = executed_[i];
    server.command_statistics.Executed(CommandIndex(request.command()), 1, nanos);
    if (server.slow_log.Wants(nanos)) {
      AccountSlowRequest(&server, context_->client, &request.command(), request.arguments(), nanos);
    }
    AccountReply(&server, &request.command(), replies_.view().substr(begin));
    if (server.monitors.any()) {
      server.monitors.Show(space, context_->client.address, request.command(), request.arguments());
    }
  }
}

}  // namespace varve
