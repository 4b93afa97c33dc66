#include "server/execution/batch_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "server/clients/client_modes.h"
#include "server/execution/request_account.h"
#include "server/execution/request_checks.h"
#include "server/execution/transaction_queue.h"
#include "util/base/letter_case.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr size_t kMaxGetRun = 64;            // keys read together
constexpr size_t kMaxSetRun = 256;           // writes committed together
constexpr size_t kMaxSetRunBytes = 1 << 20;  // and their bytes
// Bytes of a value's memory worth keeping for the next one.
constexpr size_t kKeptValue = 64u << 10;

struct Scratch {
  std::array<std::string_view, kMaxGetRun> keys;
  std::array<MultiGetResult, kMaxGetRun> results;
  WriteBatch writes;
};

Scratch& ThreadScratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

void BatchExecutor::Begin(const RequestBatch* batch) {
  batch_ = batch;
  next_ = 0;
  stream_.reset();
  broken_ = continued_ = elsewhere_ = maintenance_refused_ = sets_apart_ = false;
}

BatchExecutor::Progress BatchExecutor::Run(GatedReplies* replies, size_t budget, size_t most_here) {
  CommandContext context(server_, client_, &replies->bytes());
  const size_t full = replies->size() + budget;
  submitted_ = false;
  auto lap_begin = std::chrono::steady_clock::now();
  const auto lap = [&lap_begin] {
    const auto now = std::chrono::steady_clock::now();
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(now - std::exchange(lap_begin, now)).count());
  };
  while (!broken_ &&
         (stream_ != nullptr || (next_ < batch_->requests.size() && !client_->close_after_reply))) {
    if (replies->size() >= full || context.slice_spent()) {
      if (stream_ != nullptr) replies->Mark(kNoSequence, 0);  // the header it began with
      continued_ = true;
      break;
    }
    context.set_most_here(most_here);
    if (stream_ != nullptr) {
      const bool ended = RunStream(&context, replies, full - replies->size());
      stream_nanos_ += lap();
      if (ended) {
        Account(next_ - 1, 1, stream_nanos_);
        continue;
      }
      continued_ = true;
      break;
    }
    const size_t first = next_;
    const RequestBatch::Request& request = batch_->requests[first];
    const CommandKind kind =
        request.command != nullptr ? request.command->kind : CommandKind::kOther;
    if (kind == CommandKind::kGet) {
      next_ += RunGets(&context, replies);
    } else if (kind == CommandKind::kSet && request.count == 3) {
      next_ += RunSets(&context, replies);
    } else {
      next_ += RunOne(&context, replies);
    }
    if (context.elsewhere()) {
      continued_ = continued_ || next_ > 0;
      break;
    }
    const uint64_t nanos = lap();
    if (!context.TakeExecuted()) continue;
    if (stream_ == nullptr) {
      Account(first, next_ - first, nanos);
    } else {
      stream_nanos_ = nanos;
    }
  }
  submitted_ = context.submitted();
  slice_spent_ = context.slice_spent();
  elsewhere_ = context.elsewhere();
  const bool ended = broken_ || client_->close_after_reply ||
                     (stream_ == nullptr && next_ == batch_->requests.size());
  return ended ? Progress::kDone : Progress::kMore;
}

size_t BatchExecutor::RunLength(CommandKind kind, size_t arguments, size_t limit) const {
  size_t length = 0;
  if (client_->Restricted()) return length;
  for (size_t i = next_; i < batch_->requests.size() && length < limit; ++i, ++length) {
    const RequestBatch::Request& request = batch_->requests[i];
    if (request.command == nullptr || request.command->kind != kind || request.count != arguments)
      break;
  }
  return length;
}

size_t BatchExecutor::RunGets(CommandContext* context, GatedReplies* replies) {
  size_t length = RunLength(CommandKind::kGet, 2, kMaxGetRun);
  if (length < 2) return RunOne(context, replies);
  Scratch& scratch = ThreadScratch();
  for (size_t i = 0; i < length; ++i)
    scratch.keys[i] = batch_->arguments[batch_->requests[next_ + i].first + 1];
  const absl::Span<MultiGetResult> results(scratch.results.data(), length);
  const absl::Status status = context->store.MultiGet(
      GatedReads(context->space(), context->most_here()), {scratch.keys.data(), length}, results);
  if (status.ok()) length = CountRead(results);
  if (length == 0) context->GoElsewhere();
  WriteGets(context, replies, status, results.first(length));
  ShowToMonitors(client_->space, next_, length);
  return length;
}

void BatchExecutor::WriteGets(CommandContext* context, GatedReplies* replies,
                              const absl::Status& status, absl::Span<MultiGetResult> results) {
  uint64_t found = 0, missing = 0;
  SequenceNumber durable_after = kNoSequence;
  uint32_t unmarked = 0;  // replies that wait for it
  for (size_t i = 0; i < results.size(); ++i) {
    MultiGetResult& result = results[i];
    const size_t begin = replies->size();
    const absl::Status& failed = status.ok() ? result.status : status;
    if (const SequenceNumber own_durable_after =
            failed.ok() ? result.result.durable_after : kNoSequence;
        own_durable_after != durable_after) {
      replies->Mark(std::exchange(durable_after, own_durable_after), std::exchange(unmarked, 0));
    }
    ++unmarked;
    if (!failed.ok()) {
      context->Fail(failed);
      AccountReply(batch_->requests[next_].command, *replies, begin);
    } else if (result.result.found) {
      ++found;
      context->reply.Bulk(result.value);
    } else {
      ++missing;
      context->reply.Null();
      if (server_->clients.events.Tells(kMissEvent) && server_->MayTell()) [[unlikely]] {
        server_->clients.events.Send("keymiss", context->space(), KeyOf(next_ + i),
                                     result.result.durable_after);
      }
    }
    if (result.value.capacity() > kKeptValue) std::string().swap(result.value);
  }
  replies->Mark(durable_after, unmarked);
  server_->statistics.keyspace_hits.Add(found);
  server_->statistics.keyspace_misses.Add(missing);
}

void BatchExecutor::AnswerGets(GatedReplies* replies, const absl::Status& status,
                               absl::Span<MultiGetResult> results, uint64_t nanos_each) {
  CommandContext context(server_, client_, &replies->bytes());
  WriteGets(&context, replies, status, results);
  Account(0, results.size(), results.size() * nanos_each);
  ShowToMonitors(client_->space, 0, results.size());
}

size_t BatchExecutor::RunSets(CommandContext* context, GatedReplies* replies) {
  const size_t longest = sets_apart_ || server_->clients.events.Tells(kNewEvent)
                             ? 1
                             : RunLength(CommandKind::kSet, 3, kMaxSetRun);
  if (longest < 2) return RunOne(context, replies);
  WriteBatch& writes = ThreadScratch().writes;
  writes.Clear();
  context->UseNamespace(&writes);
  size_t length = 0;
  while (length < longest && (length == 0 || writes.bytes() < kMaxSetRunBytes)) {
    const Arguments arguments = batch_->ArgumentsOf(batch_->requests[next_ + length]);
    // A write that would be refused stands alone, so that it doesn't take the others with it.
    if (arguments[1].size() > kMaxKeySize || arguments[2].size() > kMaxValueSize) break;
    writes.Put(arguments[1], arguments[2]);
    ++length;
  }
  if (length == 0) return RunOne(context, replies);
  const absl::StatusOr<CommitResult> committed =
      context->store.Submit(context->write_options(), &writes);
  if (absl::IsCancelled(committed.status())) {
    context->GoElsewhere();
    return 0;
  }
  // Its quota may have room for some of them.
  if (length > 1 && ConcernsOneNamespace(committed.status())) {
    sets_apart_ = true;
    return RunOne(context, replies);
  }
  WriteSets(context, replies, committed, length);
  ShowToMonitors(client_->space, next_, length);
  return length;
}

void BatchExecutor::WriteSets(CommandContext* context, GatedReplies* replies,
                              const absl::StatusOr<CommitResult>& committed, size_t count) {
  if (committed.ok()) {
    for (size_t i = 0; i < count; ++i) context->reply.Ok();
    context->Submitted();
    replies->Mark(committed->durable_after, static_cast<uint32_t>(count));
    if (!server_->clients.events.Tells(kStringEvent) || !server_->MayTell()) [[likely]]
      return;
    for (size_t i = 0; i < count; ++i)
      server_->clients.events.Send("set", context->space(), KeyOf(next_ + i),
                                   committed->durable_after);
  } else {
    for (size_t i = 0; i < count; ++i) {
      const size_t begin = replies->size();
      context->Fail(committed.status());
      AccountReply(batch_->requests[next_ + i].command, *replies, begin);
    }
    replies->Mark(kNoSequence, static_cast<uint32_t>(count));
  }
}

void BatchExecutor::AnswerSets(GatedReplies* replies, const absl::StatusOr<CommitResult>& committed,
                               uint64_t nanos_each) {
  CommandContext context(server_, client_, &replies->bytes());
  const size_t count = batch_->requests.size();
  WriteSets(&context, replies, committed, count);
  Account(0, count, count * nanos_each);
  ShowToMonitors(client_->space, 0, count);
}

bool BatchExecutor::Refuse(CommandContext* context, const RequestBatch::Request& request,
                           Arguments arguments) {
  if (request.command == nullptr) {
    // What an HTTP client sends in its second line. A web page must not be able to send commands
    // through a browser.
    if (EqualsIgnoreCase(arguments[0], "post") || EqualsIgnoreCase(arguments[0], "host:")) {
      broken_ = true;
    } else {
      ReplyUnknownCommand(*context, arguments);
    }
  } else if (!TakesArguments(*request.command, arguments)) {
    server_->statistics.commands.Rejected(request.command->index);
    ReplyWrongArity(*context, request.command->name);
  } else if (batch_->refused) {
    server_->statistics.commands.Rejected(request.command->index);
    context->reply.Error("NOAUTH Authentication required.");
  } else if (maintenance_refused_ && (request.command->flags & kMaintenanceCommand) != 0) {
    context->reply.Error("ERR too many COMPACTs are waiting");
  } else {
    return client_->Restricted() && RefusedByModes(*context, *request.command, arguments);
  }
  return true;
}

size_t BatchExecutor::RunOne(CommandContext* context, GatedReplies* replies) {
  const RequestBatch::Request& request = batch_->requests[next_];
  const Arguments arguments = batch_->ArgumentsOf(request);
  const size_t before = replies->size();
  if (Refuse(context, request, arguments)) {
    if (broken_) return 1;
    NoteRefused(*context, request.command, before);
  } else if (!client_->Restricted() ||
             !QueuedByTransaction(*context, *request.command, arguments)) {
    client_->link.last_command.store(FullCommandName(*request.command, arguments),
                                     std::memory_order_relaxed);
    request.command->handler(*context, arguments);
    if (context->elsewhere()) {
      replies->Unwrite(before);
      (void)context->TakeGate();
      return 0;
    }
    ShowToMonitors(client_->space, next_, 1);
    if (context->closes()) {
      broken_ = true;
      return 1;
    }
    stream_ = context->TakeStream();
    if (stream_ != nullptr) {  // marked as it is produced
      stream_since_ = std::chrono::steady_clock::now();
      if (client_->RepliesKept()) replies->Unwrite(before);
      stream_began_ = replies->size() > before;
      return 1;
    }
  }
  AccountReply(request.command, *replies, before);
  EndReply(context, replies, before);
  return 1;
}

void BatchExecutor::EndReply(CommandContext* context, GatedReplies* replies, size_t before) {
  const bool silent = context->TakeSilent();
  const bool pushed = context->TakePushed();
  if (client_->Restricted()) [[unlikely]] {
    if (client_->RepliesKept() && !pushed) replies->Unwrite(before);
    client_->CountReply();
    if (client_->modes.monitoring && !client_->link.mailbox.empty()) {
      context->DependOn(client_->link.mailbox.TakeAll(&replies->bytes(), client_->protocol));
    }
  }
  const SequenceNumber durable_after = context->TakeGate();
  if (!silent && replies->size() > before) replies->Mark(durable_after, 1);
}

void BatchExecutor::ShowToMonitors(NamespaceId space, size_t first, size_t count) {
  if (!server_->clients.monitors.any()) [[likely]]
    return;
  for (size_t i = first; i < first + count; ++i) {
    const RequestBatch::Request& request = batch_->requests[i];
    server_->clients.monitors.Show(space, client_->address, *request.command,
                                   batch_->ArgumentsOf(request));
  }
}

void BatchExecutor::Account(size_t first, size_t count, uint64_t nanos) {
  const uint64_t each = nanos / std::max<size_t>(count, 1);
  if (const Command* command = batch_->requests[first].command; command != nullptr) {
    server_->statistics.commands.Executed(command->index, count, each);
  }
  if (!server_->statistics.slow_log.Wants(each)) [[likely]]
    return;
  for (const RequestBatch::Request& request :
       absl::MakeSpan(batch_->requests).subspan(first, count)) {
    AccountSlowRequest(server_, *client_, request.command, batch_->ArgumentsOf(request), each);
  }
}

void BatchExecutor::AccountReply(const Command* command, const GatedReplies& replies,
                                 size_t begin) {
  varve::AccountReply(server_, command, replies.bytes().view().substr(begin));
}

bool BatchExecutor::RunStream(CommandContext* context, GatedReplies* replies, size_t budget) {
  const size_t before = replies->size();
  const ReplyStream::Progress progress = stream_->Produce(*context, budget);
  const bool ended = progress == ReplyStream::Progress::kDone;
  if (client_->RepliesKept()) {
    replies->Unwrite(before);
    if (ended) EndReply(context, replies, before);
  } else {
    replies->Mark(context->TakeGate(), ended ? 1 : 0);
  }
  stream_began_ = stream_began_ || replies->size() > before;
  if (progress == ReplyStream::Progress::kMore) return false;
  broken_ = progress == ReplyStream::Progress::kBroken;
  stream_.reset();
  return true;
}

}  // namespace varve
