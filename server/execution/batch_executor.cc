#include "server/execution/batch_executor.h"

#include <algorithm>
#include <chrono>

#include "server/clients/client_login.h"
#include "server/clients/client_modes.h"
#include "server/clients/client_tracking.h"
#include "server/execution/request_account.h"
#include "server/execution/request_checks.h"
#include "server/execution/rights_check.h"
#include "server/execution/store_capability.h"
#include "server/execution/transaction_queue.h"
#include "util/base/assert.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

// On a loop one of so many whole batches, and of so many joint reads, is measured; on workers all
// batches are.
constexpr uint32_t kMeasureEvery = 16;
// Requests and bytes of a batch that joins others; the bytes are well below the limits of a key and
// a value.
constexpr size_t kMostToJoin = 16;
constexpr size_t kMostBytesToJoin = 16384;
constexpr uint32_t kFewestToShare = 8;  // keys of a batch that a helper may execute

}  // namespace

BatchExecutor::BatchExecutor(ServerState* server, ClientState* client)
    : server_(server), client_(client), cursor_{.client = client} {}

void BatchExecutor::Begin(const RequestBatch* batch) {
  VARVE_ASSERT(batch != nullptr);
  cursor_.batch = batch;
  cursor_.next = 0;
  cursor_.on_thread = SIZE_MAX;
  stream_.reset();
  paused_at_ = 0;
  room_wait_.Reset();
  refused_at_ = SIZE_MAX;
  change_wait_.reset();
  broken_ = continued_ = needs_pool_ = maintenance_refused_ = sets_apart_ = false;
}

void BatchExecutor::BeginReplies(PendingReplies* replies) {
  VARVE_ASSERT(replies != nullptr && cursor_.batch != nullptr);
  cursor_.replies = replies;
  replies->BeginBatch(inside_reply());
}

Placement BatchExecutor::Place(bool writers_wait) const {
  if (batch().maintenance && !maintenance_refused_) return Placement::kMaintenance;
  if (needs_pool_ || maintenance_refused_) return Placement::kPool;
  if (server_->store_waits.remote()) [[unlikely]]
    return NextMayWait() ? Placement::kPool : Placement::kInline;
  return PlaceBatch(server_->options.execution, batch(), server_->key_costs.read,
                    server_->key_costs.write, writers_wait);
}

bool BatchExecutor::NextMayWait() const {
  if (stream_ != nullptr) return true;
  if (cursor_.next == refused_at_ || batch().refused) return false;
  const RequestBatch::Request& next = batch().requests[cursor_.next];
  const uint32_t flags = next.command == nullptr ? 0 : next.command->flags;
  if ((flags & kSlowCommand) != 0 || ((flags & kSubscriberCommand) != 0 && LeavesSlowly(*client_)))
    return true;
  return AsksStore(*client_, next.command, batch().ArgumentsOf(next));
}

bool BatchExecutor::IsOutside(Scope scope, size_t first_of_slice) const {
  if (scope == Scope::kLocal) return NextMayWait();
  // What RemoteRun did not take comes first here.
  return stream_ == nullptr && cursor_.next > first_of_slice && NextMayWait();
}

bool BatchExecutor::MayJoin(RequestRun::Kind kind) const {
  const RequestBatch& all = batch();
  const size_t fitting = kind == RequestRun::Kind::kGets ? all.gets : all.plain_sets;
  return fitting == all.requests.size() && fitting <= kMostToJoin &&
         all.input_bytes <= kMostBytesToJoin && cursor_.next == 0 && !needs_pool_ &&
         !client_->Restricted() && !server_->store_waits.remote();
}

int64_t BatchExecutor::WorthSharing() const {
  if (client_->Restricted() || continued_ || needs_pool_ || batch().reads < kFewestToShare ||
      batch().writes > 0 || server_->store_waits.remote())
    return 0;
  return batch().reads * server_->key_costs.read.nanos();
}

BatchExecutor::Progress BatchExecutor::Run(Where where) {
  VARVE_ASSERT(cursor_.replies != nullptr);
  const bool may_block =
      where == Where::kWorker || needs_pool_ || server_->options.execution == Execution::kInline;
  const size_t max_value_bytes = may_block ? SIZE_MAX : kInlineInputBytes;
  if (server_->store_waits.remote()) [[unlikely]]
    return RunSlice(max_value_bytes, where == Where::kLoop ? Scope::kLocal : Scope::kWaits);
  const bool is_whole =
      !continued_ && !needs_pool_ && cursor_.next == 0 && !batch().slow && !batch().maintenance;
  if (!is_whole || (where == Where::kLoop && ++executions_ % kMeasureEvery != 0))
    return RunSlice(max_value_bytes);
  const auto begin = std::chrono::steady_clock::now();
  const Progress progress = RunSlice(max_value_bytes);
  if (progress == Progress::kDone) {
    const int64_t nanos =
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    const RequestBatch& all = batch();
    if (all.reads > 0 && all.writes == 0) server_->key_costs.read.Measured(nanos, all.reads);
    if (all.writes > 0 && all.reads == 0) server_->key_costs.write.Measured(nanos, all.writes);
  }
  return progress;
}

uint64_t BatchExecutor::Lap() {
  const auto now = std::chrono::steady_clock::now();
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(now - std::exchange(lap_begin_, now)).count());
}

BatchExecutor::Progress BatchExecutor::RunSlice(size_t max_value_bytes, Scope scope) {
  PendingReplies& replies = *cursor_.replies;
  CommandContext context(server_, client_, &replies.bytes());
  const size_t full = replies.size() + server_->options.reply_slice_bytes;
  const size_t first_of_slice = cursor_.next;
  bool comes_back = false;
  lap_begin_ = std::chrono::steady_clock::now();
  change_wait_.reset();
  while (progress() == Progress::kMore) {
    if (replies.size() >= full || context.slice_spent()) {
      if (stream_ != nullptr) replies.Mark(kNoSequence, 0);  // the header it began with
      continued_ = true;
      break;
    }
    if (scope != Scope::kAll && IsOutside(scope, first_of_slice)) [[unlikely]] {
      continued_ = true;
      comes_back = scope == Scope::kWaits;
      break;
    }
    context.set_max_value_bytes(max_value_bytes);
    if (stream_ != nullptr) {
      if (ContinueStream(&context, full)) continue;
      break;
    }
    const size_t first = cursor_.next;
    if (WaitsForPause()) {
      continued_ = continued_ || first > 0;
      break;
    }
    RunNext(&context);
    if (context.needs_pool()) {
      continued_ = continued_ || cursor_.next > 0;
      break;
    }
    VARVE_ASSERT(cursor_.next > first);
  }
  cursor_.submitted = cursor_.submitted || context.submitted();
  slice_spent_ = context.slice_spent() || comes_back;
  needs_pool_ = context.needs_pool();
  return progress();
}

bool BatchExecutor::WaitIsOver() const {
  if (room_wait_.holds()) return !server_->disk->IsTight();
  if (paused()) return paused_at_ != server_->clients.pause.word();
  return change_wait_ &&
         (change_wait_->word != server_->clients.changes.word() || client_->link.Unblocked());
}

std::optional<std::chrono::milliseconds> BatchExecutor::WaitLeft() const {
  VARVE_ASSERT(waits());
  if (room_wait_.holds()) return room_wait_.Left();
  if (paused()) return server_->clients.pause.Left();
  if (!change_wait_->until) return std::nullopt;
  const auto left = *change_wait_->until - std::chrono::steady_clock::now();
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(left), std::chrono::milliseconds(0));
}

bool BatchExecutor::WaitsForPause() {
  ClientPause& pause = server_->clients.pause;
  paused_at_ = 0;
  if (room_wait_.HoldsUp(*server_, *client_, batch(), batch().requests[cursor_.next])) return true;
  if (!pause.Any() || client_->is_primary_link) [[likely]]
    return false;
  const uint64_t word = pause.word();
  const ClientPause::Kind kind = pause.Now();
  const RequestBatch::Request& request = batch().requests[cursor_.next];
  // A stop of the server waits for the requests that were read.
  if (batch().refused || server_->draining.load(std::memory_order_relaxed) ||
      !IsHeldUp(*client_, kind, request.command, batch().ArgumentsOf(request)))
    return false;
  paused_at_ = word;
  return true;
}

bool BatchExecutor::ContinueStream(CommandContext* context, size_t full) {
  VARVE_ASSERT(cursor_.next > 0 && full > cursor_.replies->size());
  const bool ended = RunStream(context, full - cursor_.replies->size());
  stream_nanos_ += Lap();
  if (ended) {
    AccountRequests(server_, *client_, batch(), cursor_.next - 1, 1, stream_nanos_);
  } else {
    continued_ = true;
    change_wait_ = context->TakeChangeWait();
    VARVE_ASSERT(!change_wait_ || !stream_began_);
  }
  return ended;
}

void BatchExecutor::RunNext(CommandContext* context) {
  VARVE_ASSERT(cursor_.next < batch().requests.size() && stream_ == nullptr);
  const RequestBatch::Request& request = batch().requests[cursor_.next];
  const bool is_alone = request.command == nullptr || cursor_.next == refused_at_;
  const CommandKind kind = is_alone ? CommandKind::kOther : request.command->kind;
  if (kind == CommandKind::kGet && RunTogether(context, RequestRun::Kind::kGets)) return;
  if (kind == CommandKind::kSet && RunTogether(context, RequestRun::Kind::kSets)) return;
  const size_t first = cursor_.next;
  const size_t before = cursor_.replies->size();
  RunOne(context);
  if (context->needs_pool()) {
    // The pool executes the request anew: what it has written so far is no reply.
    cursor_.replies->Unwrite(before);
    (void)context->TakeDurableAfter();
    return;
  }
  cursor_.next = first + 1;
  const uint64_t nanos = Lap();
  if (!context->TakeExecuted()) return;
  if (stream_ == nullptr) {
    AccountRequests(server_, *client_, batch(), first, 1, nanos);
  } else {
    stream_nanos_ = nanos;
  }
}

bool BatchExecutor::RunTogether(CommandContext* context, RequestRun::Kind kind) {
  RequestRun& run = RequestRun::OfThread();
  run.Begin(kind, server_, context->max_value_bytes());
  // What is on other machines is atomic by key, or by group of keys, and no more.
  const bool one_by_one =
      (sets_apart_ || server_->store_waits.remote()) && kind == RequestRun::Kind::kSets;
  if (run.Take(&cursor_, one_by_one ? 1 : run.room()) == 0) return false;
  RequestRun::Outcome outcome = run.Execute();
  if (outcome == RequestRun::Outcome::kApart) {
    sets_apart_ = true;
    return RunTogether(context, kind);
  }
  if (outcome == RequestRun::Outcome::kNeedsPool) {
    context->MoveToPool();
  } else {
    run.Account(Lap());
  }
  return true;
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
    ReplyWrongArguments(*context, *request.command, arguments);
  } else if (batch().refused) {
    server_->statistics.commands.Rejected(request.command->index);
    context->reply.Error("NOAUTH Authentication required.");
  } else if (maintenance_refused_ && (request.command->flags & kMaintenanceCommand) != 0) {
    context->reply.Error("ERR too many requests for COMPACT, PURGE or BACKUP are waiting");
  } else if (cursor_.next == refused_at_) {
    if (request.command->name == "exec") EndTransaction(client_);
    server_->statistics.commands.Rejected(request.command->index);
    context->reply.Error(
        "UNAVAILABLE the machine that has the key does not answer, and many requests wait for it: "
        "nothing was done, and it may be tried again");
  } else {
    if (client_->Restricted() && RefuseRestricted(context, *request.command, arguments))
      return true;
    if (RefuseByStore(context, *request.command, arguments)) return true;
    if (MayRefuseByBounds(*server_) && RefuseByBounds(context, *request.command, arguments))
      return true;
    const bool refused = MayRefuseForReplication(*server_) &&
                         RefusedForReplication(*context, *request.command, arguments);
    if (refused) server_->statistics.commands.Rejected(request.command->index);
    return refused;
  }
  return true;
}

bool BatchExecutor::RefuseRestricted(CommandContext* context, const Command& command,
                                     Arguments arguments) {
  // The session refuses what a client sends before its login. This is for the requests behind a
  // RESET in the same batch.
  if (MustLogIn(*client_, server_->clients.users) && (command.flags & kBeforeLoginCommand) == 0) {
    server_->statistics.commands.Rejected(command.index);
    context->reply.Error("NOAUTH Authentication required.");
    return true;
  }
  const RightsCheck checked = CheckRights(*context, command, arguments);
  if (checked == RightsCheck::kAllowed) return RefusedByModes(*context, command, arguments);
  broken_ = checked == RightsCheck::kUserGone;
  server_->statistics.commands.Rejected(command.index);
  return true;
}

bool BatchExecutor::RefuseByStore(CommandContext* context, const Command& command,
                                  Arguments arguments) {
  // What waits for EXEC is checked there, together with all that is around it.
  const bool refused = RefusedByStore(*context, command, arguments) ||
                       (WritesTogether(command) && !client_->modes.transaction.open &&
                        RefusedAcrossGroups(*context, command, arguments));
  if (refused) server_->statistics.commands.Rejected(command.index);
  return refused;
}

bool BatchExecutor::RefuseByBounds(CommandContext* context, const Command& command,
                                   Arguments arguments) {
  const bool refused = RefusedByBounds(*context, command, arguments);
  if (refused && !context->needs_pool()) server_->statistics.commands.Rejected(command.index);
  return refused;
}

void BatchExecutor::RunOne(CommandContext* context) {
  PendingReplies& replies = *cursor_.replies;
  const RequestBatch::Request& request = batch().requests[cursor_.next];
  const Arguments arguments = batch().ArgumentsOf(request);
  const size_t before = replies.size();
  if (Refuse(context, request, arguments)) {
    if (broken_ || context->needs_pool()) return;
    NoteRefused(*context, request.command, before);
  } else if (!client_->Restricted() ||
             !QueuedByTransaction(*context, *request.command, arguments)) {
    client_->link.last_command.store(FullCommandName(*request.command, arguments),
                                     std::memory_order_relaxed);
    if (client_->modes.tracking.on) [[unlikely]]
      TrackReads(&server_->clients, client_, *request.command, arguments);
    request.command->handler(*context, arguments);
    if (context->needs_pool()) return;
    stream_ = context->TakeStream();
    stream_shown_ = stream_ == nullptr || stream_->MayBeShown();
    if (stream_shown_) ShowToMonitors(server_, *client_, client_->space, batch(), cursor_.next, 1);
    if (server_->clients.audit.on()) [[unlikely]]
      NoteExecuted(*context, *request.command, arguments);
    if (context->closes()) {
      broken_ = true;
      return;
    }
    if (stream_ != nullptr) {  // marked as it is produced
      EndCaching(client_, request.command);
      stream_since_ = std::chrono::steady_clock::now();
      if (client_->RepliesKept()) replies.Unwrite(before);
      stream_began_ = replies.size() > before;
      return;
    }
  }
  EndCaching(client_, request.command);
  AccountReply(server_, request.command, replies.bytes().view().substr(before));
  EndReply(context, before);
}

void BatchExecutor::EndReply(CommandContext* context, size_t before) {
  PendingReplies& replies = *cursor_.replies;
  const bool silent = context->TakeSilent();
  const bool pushed = context->TakePushed();
  if (client_->Restricted()) [[unlikely]] {
    if (client_->RepliesKept() && !pushed) replies.Unwrite(before);
    client_->CountReply();
    if (client_->modes.monitoring && !client_->link.mailbox.empty()) {
      context->DependOn(client_->link.mailbox.TakeAll(&replies.bytes(), client_->protocol));
    }
  }
  const SequenceNumber durable_after = context->TakeDurableAfter();
  if (!silent && replies.size() > before) replies.Mark(durable_after, 1);
}

void BatchExecutor::ShowStreamed() {
  if (stream_shown_ || !stream_->MayBeShown()) return;
  stream_shown_ = true;
  ShowToMonitors(server_, *client_, client_->space, batch(), cursor_.next - 1, 1);
}

bool BatchExecutor::RunStream(CommandContext* context, size_t budget) {
  PendingReplies& replies = *cursor_.replies;
  const size_t before = replies.size();
  const ReplyStream::Progress progress = stream_->Produce(*context, budget);
  ShowStreamed();
  const bool ended = progress == ReplyStream::Progress::kDone;
  if (client_->RepliesKept()) {
    replies.Unwrite(before);
    if (ended) EndReply(context, before);
  } else {
    replies.Mark(context->TakeDurableAfter(), ended ? 1 : 0);
  }
  stream_began_ = stream_began_ || replies.size() > before;
  if (progress == ReplyStream::Progress::kMore) return false;
  broken_ = progress == ReplyStream::Progress::kBroken;
  stream_.reset();
  return true;
}

// --- The batches of a round ----------------------------------------------------------------------

bool RoundExecutor::Execute(absl::Span<BatchExecutor* const> batches) {
  if (batches.size() > 1) {
    Join(RequestRun::Kind::kGets, batches);
    Join(RequestRun::Kind::kSets, batches);
  }
  bool submitted = false;
  for (BatchExecutor* const batch : batches) {
    if (batch->progress() == BatchExecutor::Progress::kMore)
      (void)batch->Run(BatchExecutor::Where::kLoop);
    submitted = batch->TakeSubmitted() || submitted;
  }
  return submitted;
}

void RoundExecutor::Join(RequestRun::Kind kind, absl::Span<BatchExecutor* const> batches) {
  const bool may_block = server_->options.execution == Execution::kInline;
  const size_t max_value_bytes = may_block ? SIZE_MAX : kInlineInputBytes;
  RequestRun& run = RequestRun::OfThread();
  run.Begin(kind, server_, max_value_bytes);
  for (BatchExecutor* const batch : batches) {
    if (!batch->MayJoin(kind)) continue;
    const size_t requests = batch->batch().requests.size();
    if (requests > run.room()) {
      ExecuteJoint(&run, kind);
      run.Begin(kind, server_, max_value_bytes);
    }
    (void)run.Take(batch->cursor(), requests);
  }
  if (run.size() > 0) ExecuteJoint(&run, kind);
}

void RoundExecutor::ExecuteJoint(RequestRun* run, RequestRun::Kind kind) {
  VARVE_ASSERT(run->size() > 0);
  const auto begin = std::chrono::steady_clock::now();
  (void)run->Execute();  // what is left unanswered is executed apart, in the same round
  const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
  if (kind == RequestRun::Kind::kGets && ++joint_reads_ % kMeasureEvery == 0)
    server_->key_costs.read.Measured(taken.count(), static_cast<int64_t>(run->size()));
  run->Account(static_cast<uint64_t>(taken.count()));
}

}  // namespace varve
