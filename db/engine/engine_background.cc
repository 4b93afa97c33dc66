// Engine: what runs behind the users' backs. One thread flushes write buffers, oldest first; one
// merges.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "db/compaction/value_collection.h"
#include "db/engine/engine.h"
#include "db/version/version_edit.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr absl::Duration kFlushRetry = absl::Milliseconds(200);
// A merge that failed is tried again after 1 s, 2 s, 4 s and so on: a damaged segment stays
// damaged, and each try may read and write gigabytes. What else fails may have been mended
// meanwhile, as a full disk.
constexpr absl::Duration kFirstCompactionRetry = absl::Seconds(1);
constexpr absl::Duration kLastCompactionRetry = absl::Seconds(8);
constexpr absl::Duration kLastRetryOfDamage = absl::Seconds(64);
constexpr absl::Duration kRestBeforeMemoryGoes = absl::Seconds(2);
constexpr absl::Duration kBurst = absl::Seconds(1);  // behind a flush; then it is over
// Under load something is installed more often.
constexpr absl::Duration kRestBeforeSettling = absl::Seconds(5);

// Into the server's log. Words are worth less than going on without them.
void Tell(std::string_view what, const absl::Status& status) noexcept {
  const auto level = status.ok() ? spdlog::level::info : spdlog::level::err;
  TryWithMemory(
      [&] { spdlog::log(level, "{}: {}", what, status.ok() ? "works again" : status.ToString()); });
}

}  // namespace

// --- Threads -------------------------------------------------------------------------------------

void Engine::FlushLoop() {
  NameThread("varve-flush");
  YieldToForeground();
  SteadyTime memory_goes_at = SteadyNow();
  for (bool in_trouble = false;;) {
    {
      absl::MutexLock lock(&commit_mutex_);
      bool idle = false;
      while (!stopping_ && flush_queue_.empty() && !reclaim_due_ && !idle) {
        if (buffer_memory_->keeps()) {
          idle = flush_work_.WaitWithDeadline(&commit_mutex_, memory_goes_at);
        } else {
          flush_work_.Wait(&commit_mutex_);
        }
      }
      if (stopping_) return;
      reclaim_due_ = false;
      if (!flush_queue_.empty()) memory_goes_at = SteadyNow() + kRestBeforeMemoryGoes;
    }
    if (SteadyNow() >= memory_goes_at) buffer_memory_->KeepUpTo(0);
    ReclaimStates();
    const absl::Status status =
        GuardMemory("flushing a write buffer", [this] { return FlushOldest(); });
    ReclaimStates();
    absl::MutexLock lock(&commit_mutex_);
    if (status.ok() == in_trouble && !stopping_) Tell("flush", status);
    in_trouble = !status.ok();
    background_status_ = status;
    room_.SignalAll();
    if (!status.ok() && !stopping_) flush_work_.WaitWithTimeout(&commit_mutex_, kFlushRetry);
  }
}

bool Engine::HasBackgroundWorkLocked() const {
  return stopping_ || compaction_due_ || !compact_requests_.empty() || !flush_queue_.empty();
}

void Engine::CompactionLoop() {
  NameThread("varve-merge");
  YieldToForeground();
  absl::Status trouble;
  absl::Duration pause = kFirstCompactionRetry;
  // Of merges; removing needs no I/O that could fail again.
  SteadyTime next_try = SteadyTime::min();
  SteadyTime look_again_at = kEndOfTime;
  for (;;) {
    CompactRequest* request = nullptr;
    bool at_rest = false;
    bool in_burst = false;
    {
      absl::MutexLock lock(&commit_mutex_);
      while (!at_rest && !stopping_ && !compaction_due_ && compact_requests_.empty()) {
        if (settling_due_ && look_again_at == kEndOfTime) {
          at_rest = compaction_work_.WaitWithTimeout(&commit_mutex_, kRestBeforeSettling) &&
                    !HasBackgroundWorkLocked();
        } else if (compaction_work_.WaitWithDeadline(&commit_mutex_, look_again_at)) {
          compaction_due_ = true;
        }
      }
      // What failed is not put off: its trouble would seem to be over.
      const bool flushing = !flush_queue_.empty() && background_status_.ok();
      in_burst = trouble.ok() && (flushing || SteadyNow() < last_flush_ + kBurst);
      if (!compact_requests_.empty()) {
        request = compact_requests_.front();
        compact_requests_.pop_front();
      } else if (stopping_) {
        return;
      }
      compaction_due_ = false;
    }
    if (at_rest) {
      TryWithMemory([this] { SettleAtRest(); });
      ReclaimStates();
      continue;
    }
    const bool may_merge = SteadyNow() >= next_try;
    absl::StatusOr<bool> more = true;  // after a request the tree may be out of shape
    if (request != nullptr) {
      const absl::Status status = GuardMemory(
          "merging a range", [&] { return CompactRange(request->lower, request->upper); });
      absl::MutexLock lock(&commit_mutex_);
      request->status = UnsharedCopy(status);
      request->done = true;
      room_.SignalAll();
    } else {
      more = GuardMemory("merging", [&] { return CompactStep(may_merge, in_burst); });
    }
    ReclaimStates();
    absl::MutexLock lock(&commit_mutex_);
    UpdatePressureLocked();
    if (more.ok()) {
      if (*more) compaction_due_ = true;
      if (request != nullptr || !may_merge) continue;  // says nothing of what failed
      if (!trouble.ok()) Tell("compaction", absl::OkStatus());
      trouble = absl::OkStatus();
      pause = kFirstCompactionRetry;
      look_again_at = in_burst ? SteadyNow() + kBurst : kEndOfTime;
    } else if (!stopping_) {
      // Other errors than of damage name the output, which is another file each time.
      ++counters_.failed_compactions;
      const bool is_known = absl::IsDataLoss(trouble) ? more.status() == trouble
                                                      : more.status().code() == trouble.code();
      if (!is_known) Tell("compaction", more.status());
      trouble = more.status();
      look_again_at = next_try = SteadyNow() + pause;
      pause = std::min(2 * pause,
                       absl::IsDataLoss(trouble) ? kLastRetryOfDamage : kLastCompactionRetry);
    }
  }
}

// States are small, but they hold write buffers and segments in place; readers let go of them
// within a read.
void Engine::ReclaimStates() {
  for (int tries = 0; state_.Reclaim() != 0 && tries < 100; ++tries)
    absl::SleepFor(absl::Milliseconds(1));
}

void Engine::UpdatePressureLocked() noexcept {
  double pressure = static_cast<double>(flush_queue_.size()) / options_.max_full_write_buffers;
  const Version& version = *present_->version;
  TryWithMemory([&] { pressure = std::max(pressure, picker_->Debt(version.shape(), options_)); });
  throttle_.set_pressure(pressure);
}

// --- Flush ---------------------------------------------------------------------------------------

absl::Status Engine::FlushOldest() {
  FullBuffer full;
  {
    absl::MutexLock lock(&commit_mutex_);
    if (flush_queue_.empty()) return absl::OkStatus();
    full = flush_queue_.front();
  }
  // Segments hold nothing that the log could still lose.
  if (log_->durable_sequence() < full.buffer->last_sequence()) VARVE_RETURN_IF_ERROR(log_->Sync());
  return FlushBuffer(full);
}

absl::Status Engine::FlushBuffer(const FullBuffer& full) {
  const CompactionContext context = NewContext();
  const std::vector<SequenceNumber> cuts = SnapshotsAndCuts(context);
  const std::unique_ptr<InternalIterator> records = full.buffer->NewSortedIterator(
      /*newest_only=*/cuts.empty() || cuts.front() >= full.buffer->last_sequence());
  const bool first = PresentVersion()->segment_count() == 0;
  const std::unique_ptr<ValuePlacer> placer = NewPlacer(full);
  VARVE_ASSIGN_OR_RETURN(const CompactionResult result,
                         RunFlush(records.get(), full.buffer->range_tombstones(),
                                  {full.buffer->entries(), full.buffer->bytes_used(),
                                   full.buffer->logged_large_bytes()},
                                  /*drops_tombstones=*/first, placer.get(), context));
  const std::optional<KeyTallies> settled =
      result.filtered ? std::nullopt : SettledChangeOf(*full.buffer);
  const auto follow = [&](const Version& next, KeyLedger* ledger) {
    if (settled && !result.segments.empty())
      ledger->Settle(next, {NumbersOf(result.segments), *settled});
  };
  absl::MutexLock lock(&install_mutex_);
  const absl::Status installed =
      GuardMemory("installing a segment", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return Install(ApplyFlush(*PresentVersion(), result.segments), &full, result.filtered,
                       follow);
      });
  if (!installed.ok()) {
    DropUninstalled(result.segments);
    return installed;
  }
  ++counters_.flushes;
  counters_.flushed_bytes += result.bytes_written;
  return absl::OkStatus();
}

absl::Status Engine::FlushInside() {
  absl::MutexLock lock(&commit_mutex_);
  if (last_sequence_ >= present_->active->first_sequence()) RotateBufferLocked();
  const SequenceNumber target = last_sequence_;
  while (!flush_queue_.empty() && flushed_ < target && background_status_.ok() && !closed_ &&
         !log_failed_.load()) {
    room_.Wait(&commit_mutex_);
  }
  if (flush_queue_.empty() || flushed_ >= target) return absl::OkStatus();
  if (closed_) return absl::UnavailableError("the store is closed");
  return background_status_.ok() ? log_->status() : UnsharedCopy(background_status_);
}

// --- Compaction ----------------------------------------------------------------------------------

std::shared_ptr<const Version> Engine::PresentVersion() const {
  absl::MutexLock lock(&commit_mutex_);
  return present_->version;
}

CompactionContext Engine::NewContext() {
  const SnapshotList::Held held = snapshots_.List(visible_);
  NamespaceBases bases;
  std::function<bool(NamespaceGeneration)> is_live = LiveGenerations(held, &bases);
  return {.file_system = file_system_,
          .directory = directory_,
          .options = &options_,
          .caches = &caches_,
          .next_file_number = [this] { return NewFileNumber(); },
          .snapshots = held.sequences,
          .is_live = std::move(is_live),
          .bases = std::move(bases),
          .cancel = &cancel_compaction_,
          .hurries = [this] { return throttle_.pressure() > 0; }};
}

absl::StatusOr<bool> Engine::CompactStep(bool may_merge, bool in_burst) {
  // The version first, then the snapshots: one that is taken later sees all of the inputs, newest
  // versions only.
  const std::shared_ptr<const Version> version = PresentVersion();
  CompactionContext context = NewContext();
  std::optional<CompactionPlan> plan =
      PlanDeadSegments(*version, SnapshotsAndCuts(context), context.is_live);
  if (!plan && may_merge && IsUrgent(ValueSpaceOf(*version))) {
    context.hurries = [] { return true; };
    plan = PlanCollection(*version);
  }
  if (!plan && may_merge) {
    if (const auto pick = picker_->Pick(version->shape(), options_, in_burst)) {
      VARVE_ASSIGN_OR_RETURN(plan, PlanOf(*version, *pick));
    }
    if (plan && ReadsDamage(*plan)) plan = PlanAroundDamage(*version, options_);
  }
  if (!plan && may_merge) plan = PlanCollection(*version);
  if (!plan) return false;
  VARVE_RETURN_IF_ERROR(RunPlan(*version, *plan, context));
  return true;
}

absl::Status Engine::RunPlan(const Version& version, const CompactionPlan& plan,
                             const CompactionContext& context) {
  VARVE_ASSIGN_OR_RETURN(const CompactionResult result, RunCompaction(version, plan, context));
  const auto follow = [&](const Version&, KeyLedger* ledger) {
    ledger->Follow(version, plan, result.segments, result.filtered);
  };
  absl::MutexLock lock(&install_mutex_);
  const absl::Status installed =
      GuardMemory("installing what was merged", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return Install(ApplyCompaction(*PresentVersion(), plan, result.segments), nullptr,
                       result.filtered || plan.remove_only, follow);
      });
  if (!installed.ok()) {
    DropUninstalled(result.segments);
    return installed;
  }
  ++counters_.compactions;
  counters_.compacted_bytes += result.bytes_written;
  counters_.compaction_input_bytes += result.bytes_read;
  return absl::OkStatus();
}

absl::Status Engine::CompactRange(std::string_view lower, std::string_view upper) {
  const std::shared_ptr<const Version> version = PresentVersion();
  const CompactionContext context = NewContext();
  const std::optional<CompactionPlan> plan = PlanRange(*version, lower, upper);
  return plan ? RunPlan(*version, *plan, context) : absl::OkStatus();
}

absl::Status Engine::CompactInside(std::string_view lower, std::string_view upper,
                                   NamespaceId space) {
  VARVE_RETURN_IF_ERROR(Flush());
  CompactRequest request;
  absl::MutexLock lock(&commit_mutex_);
  if (closed_) return absl::UnavailableError("the store is closed");
  const std::optional<NamespaceGeneration> generation = present_->namespaces.Generation(space);
  if (!generation) return NoSuchNamespace(space);
  request.lower = TreeKey(*generation, lower).view();
  request.upper =
      upper.empty() ? EndTreeKey(*generation) : std::string(TreeKey(*generation, upper).view());
  compact_requests_.push_back(&request);
  compaction_work_.Signal();
  while (!request.done) room_.Wait(&commit_mutex_);
  // Nothing but closing cancels a merge.
  return absl::IsAborted(request.status) ? absl::UnavailableError("the store is closed")
                                         : request.status;
}

// --- The log -------------------------------------------------------------------------------------

void Engine::OnLogProgress() {
  if (!log_->status().ok()) NoteLogFailure();
  SequenceNumber cleared = last_clear_.load();
  if (cleared != kNoSequence && cleared <= log_->durable_sequence() &&
      last_clear_.compare_exchange_strong(cleared, kNoSequence)) {
    absl::MutexLock lock(&commit_mutex_);
    compaction_due_ = true;
    compaction_work_.Signal();
  }
  TryWithMemory([this] { BoundLog(); });  // else at the next progress
  CompleteAsyncWrites();
}

void Engine::NoteLogFailure() {
  if (log_failed_.load() || log_->status().ok()) return;
  absl::MutexLock lock(&commit_mutex_);
  NoteLogFailureLocked();
}

void Engine::NoteLogFailureLocked() noexcept {
  if (log_->status().ok() || log_failed_.exchange(true)) return;
  TryWithMemory(
      [&] { spdlog::critical("writes are refused, reads go on: {}", log_->status().ToString()); });
  room_.SignalAll();
}

}  // namespace varve
