// Engine: what runs behind the users' backs. One thread flushes write buffers, oldest first; one merges. Each new tree is
// installed the same way: manifest on disk, then the readers' state, then what became unnecessary is let go.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "absl/time/clock.h"
#include "db/engine.h"
#include "db/namespace_status.h"
#include "db/value_collection.h"
#include "db/version_edit.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/memory_guard.h"
#include "util/status.h"
#include "util/thread_setup.h"

namespace varve {
namespace {

constexpr absl::Duration kFlushRetry = absl::Milliseconds(200);
// A merge that failed is tried again after 1 s, 2 s, 4 s and so on: a damaged segment stays damaged, and each try may read
// and write gigabytes. What else fails may have been mended meanwhile, as a full disk.
constexpr absl::Duration kFirstCompactionRetry = absl::Seconds(1);
constexpr absl::Duration kLastCompactionRetry = absl::Seconds(8);
constexpr absl::Duration kLastRetryOfDamage = absl::Seconds(64);
constexpr absl::Duration kRestBeforeSettling = absl::Seconds(5);  // under load something is installed more often

std::unordered_set<uint64_t> SegmentNumbers(const Manifest& manifest) {
  std::unordered_set<uint64_t> numbers;
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) numbers.insert(segment.number);
    }
  }
  return numbers;
}

std::unordered_set<uint64_t> ValueFileNumbers(const Manifest& manifest) {
  std::unordered_set<uint64_t> numbers;
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) {
        for (const ValueReference& file : segment.value_files) numbers.insert(file.file_number);
      }
    }
  }
  return numbers;
}

// Into the server's log. Words are worth less than going on without them.
void Tell(std::string_view what, const absl::Status& status) noexcept {
  const auto level = status.ok() ? spdlog::level::info : spdlog::level::err;
  TryWithMemory([&] { spdlog::log(level, "{}: {}", what, status.ok() ? "works again" : status.ToString()); });
}

// Those of generations that still stand on another one.
KeyTallies TalliesOfUse(const KeyTallies& tallies, const NamespaceBases& bases) {
  KeyTallies of_use;
  for (const KeyTallies::Entry& entry : tallies.entries()) {
    if (bases.Of(entry.generation) != nullptr) of_use.Add(entry.generation, entry.tally);
  }
  return of_use;
}

}  // namespace

// --- Threads ---------------------------------------------------------------------------------------------------------------

void Engine::FlushLoop() {
  NameThread("varve-flush");
  YieldToForeground();
  for (bool in_trouble = false;;) {
    {
      absl::MutexLock lock(&commit_mutex_);
      while (!stopping_ && flush_queue_.empty() && !reclaim_due_) flush_work_.Wait(&commit_mutex_);
      if (stopping_) return;
      reclaim_due_ = false;
    }
    ReclaimStates();
    const absl::Status status = GuardMemory("flushing a write buffer", [this] { return FlushOldest(); });
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
  SteadyTime next_try = SteadyTime::min();  // of merges; removing needs no I/O that could fail again
  for (;;) {
    CompactRequest* request = nullptr;
    bool at_rest = false;
    {
      absl::MutexLock lock(&commit_mutex_);
      while (!at_rest && !stopping_ && !compaction_due_ && compact_requests_.empty()) {
        if (settling_due_ && trouble.ok()) {
          at_rest = compaction_work_.WaitWithTimeout(&commit_mutex_, kRestBeforeSettling) && !HasBackgroundWorkLocked();
        } else if (compaction_work_.WaitWithDeadline(&commit_mutex_, trouble.ok() ? kEndOfTime : next_try)) {
          compaction_due_ = true;
        }
      }
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
      const absl::Status status =
          GuardMemory("merging a range", [&] { return CompactRange(request->lower, request->upper); });
      absl::MutexLock lock(&commit_mutex_);
      request->status = UnsharedCopy(status);
      request->done = true;
      room_.SignalAll();
    } else {
      more = GuardMemory("merging", [&] { return CompactStep(may_merge); });
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
    } else if (!stopping_) {
      ++counters_.failed_compactions;  // other errors than of damage name the output, which is another file each time
      const bool is_known =
          absl::IsDataLoss(trouble) ? more.status() == trouble : more.status().code() == trouble.code();
      if (!is_known) Tell("compaction", more.status());
      trouble = more.status();
      next_try = SteadyNow() + pause;
      pause = std::min(2 * pause, absl::IsDataLoss(trouble) ? kLastRetryOfDamage : kLastCompactionRetry);
    }
  }
}

// States are small, but they hold write buffers and segments in place; readers let go of them within a read.
void Engine::ReclaimStates() {
  for (int tries = 0; state_.Reclaim() != 0 && tries < 100; ++tries) absl::SleepFor(absl::Milliseconds(1));
}

void Engine::UpdatePressureLocked() noexcept {
  double pressure = static_cast<double>(flush_queue_.size()) / options_.max_full_write_buffers;
  const Version& version = *present_->version;
  TryWithMemory([&] { pressure = std::max(pressure, picker_->Debt(version, options_)); });
  throttle_.set_pressure(pressure);
}

// --- Flush -----------------------------------------------------------------------------------------------------------------

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
  const std::unique_ptr<InternalIterator> records = full.buffer->NewSortedIterator();
  const bool first = PresentVersion()->segment_count() == 0;
  const std::unique_ptr<ValuePlacer> placer = NewPlacer(full);
  VARVE_ASSIGN_OR_RETURN(const CompactionResult result,
                         RunFlush(records.get(), full.buffer->range_tombstones(), full.buffer->entries(),
                                  full.buffer->bytes_used(), /*drops_tombstones=*/first, placer.get(), NewContext()));
  const std::optional<KeyTallies> settled = result.filtered ? std::nullopt : SettledChangeOf(*full.buffer);
  const auto follow = [&](const Version& next, KeyLedger* ledger) {
    if (settled && !result.segments.empty()) ledger->Settle(next, {NumbersOf(result.segments), *settled});
  };
  absl::MutexLock lock(&install_mutex_);
  const absl::Status installed = GuardMemory("installing a segment", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return Install(ApplyFlush(*PresentVersion(), result.segments), &full, result.filtered, follow);
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
  while (!flush_queue_.empty() && flushed_ < target && background_status_.ok() && !closed_ && !log_failed_.load()) {
    room_.Wait(&commit_mutex_);
  }
  if (flush_queue_.empty() || flushed_ >= target) return absl::OkStatus();
  if (closed_) return absl::UnavailableError("the store is closed");
  return background_status_.ok() ? log_->status() : UnsharedCopy(background_status_);
}

// --- Compaction ------------------------------------------------------------------------------------------------------------

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
          .cancel = &cancel_compaction_};
}

absl::StatusOr<bool> Engine::CompactStep(bool may_merge) {
  // The version first, then the snapshots: one that is taken later sees all of the inputs, newest versions only.
  const std::shared_ptr<const Version> version = PresentVersion();
  const CompactionContext context = NewContext();
  std::optional<CompactionPlan> plan = PlanDeadSegments(*version, SnapshotsAndCuts(context), context.is_live);
  if (!plan && may_merge && IsUrgent(ValueSpaceOf(*version))) plan = PlanCollection(*version);
  if (!plan && may_merge) {
    plan = picker_->Pick(*version, options_);
    if (plan && ReadsDamage(*plan)) plan = PlanAroundDamage(*version, options_);
  }
  if (!plan && may_merge) plan = PlanCollection(*version);
  if (!plan) return false;
  VARVE_RETURN_IF_ERROR(RunPlan(*version, *plan, context));
  return true;
}

absl::Status Engine::RunPlan(const Version& version, const CompactionPlan& plan, const CompactionContext& context) {
  VARVE_ASSIGN_OR_RETURN(const CompactionResult result, RunCompaction(version, plan, context));
  const auto follow = [&](const Version&, KeyLedger* ledger) {
    ledger->Follow(version, plan, result.segments, result.filtered);
  };
  absl::MutexLock lock(&install_mutex_);
  const absl::Status installed = GuardMemory("installing what was merged", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
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

absl::Status Engine::CompactInside(std::string_view lower, std::string_view upper, NamespaceId space) {
  VARVE_RETURN_IF_ERROR(Flush());
  CompactRequest request;
  absl::MutexLock lock(&commit_mutex_);
  if (closed_) return absl::UnavailableError("the store is closed");
  const std::optional<NamespaceGeneration> generation = present_->namespaces.Generation(space);
  if (!generation) return NoSuchNamespace(space);
  request.lower = TreeKey(*generation, lower).view();
  request.upper = upper.empty() ? EndTreeKey(*generation) : std::string(TreeKey(*generation, upper).view());
  compact_requests_.push_back(&request);
  compaction_work_.Signal();
  while (!request.done) room_.Wait(&commit_mutex_);
  // Nothing but closing cancels a merge.
  return absl::IsAborted(request.status) ? absl::UnavailableError("the store is closed") : request.status;
}

// --- Installing ------------------------------------------------------------------------------------------------------------

absl::Status Engine::Install(std::vector<Level> levels, const FullBuffer* flushed, bool sees_less,
                             absl::FunctionRef<void(const Version&, KeyLedger*)> follow) {
  const std::shared_ptr<const Version> before = PresentVersion();
  const auto version = std::make_shared<const Version>(std::move(levels), before.get());
  Manifest next = manifest_;
  next.levels = ManifestLevels(version->levels());
  next.clean_end = false;
  const CountPoint point = NewCountPoint();
  KeyLedger ledger = point.ledger;
  follow(*version, &ledger);
  ledger.Tidy(*version);
  next.settled = ledger.groups();
  if (flushed != nullptr) {
    next.flushed_sequence = flushed->buffer->last_sequence();
    flushed->namespaces.WriteTo(&next);
    std::erase_if(next.log_ends, [&](const LogEnd& end) { return end.last_sequence <= next.flushed_sequence; });
  }
  next.next_file_number = next_file_number_.load();
  next.next_generation = next_generation_.load();
  next.clock_mark = clock_.mark();
  next.base_tallies = TalliesOfUse(point.bases, point.state->namespaces.bases());
  const std::unordered_set<uint64_t> live = SegmentNumbers(next);
  VARVE_RETURN_IF_ERROR(WriteManifest(file_system_, directory_, next));
  // Should this fail, the manifest on disk is as good as the one before it, with which the next try begins: what it retired
  // is still there.
  PublishInstalled(version, next, flushed, sees_less, follow);
  manifest_ = std::move(next);
  FollowValueFiles(*before, *version);

  if (flushed != nullptr) {
    RetireLog(manifest_.flushed_sequence);
    log_bytes_at_flush_.store(log_->live_bytes());
  }
  for (const Run* run : before->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      if (!live.contains(segment->info().number)) segment->MarkObsolete(&remover_);
    }
  }
  return absl::OkStatus();
}

void Engine::PublishInstalled(const std::shared_ptr<const Version>& version, const Manifest& manifest,
                              const FullBuffer* flushed, bool sees_less,
                              absl::FunctionRef<void(const Version&, KeyLedger*)> follow) {
  const SnapshotList::Held held = snapshots_.List(visible_);
  absl::MutexLock lock(&commit_mutex_);
  const std::shared_ptr<ReadState> next = CopyStateLocked();
  next->version = version;
  KeyLedger ledger = ledger_;
  follow(*version, &ledger);  // more may have been settled meanwhile
  ledger.Tidy(*version);
  std::vector<RangeTombstone> tombstones;  // still in buffers
  KeyTallies base_tallies;
  const SequenceNumber oldest_reader = held.sequences.empty() ? held.visible : held.sequences.front();
  const SequenceNumber forgotten = std::min(manifest.flushed_sequence, oldest_reader);
  if (flushed != nullptr) {
    if (!next->namespaces.bases().empty()) next->namespaces.ForgetBases(GenerationsLeftAfterLocked(forgotten));
    base_tallies = TalliesOfUse(base_tallies_, next->namespaces.bases());
    std::erase(next->full, flushed->buffer);
    if (!flushed->buffer->range_tombstones().empty()) {
      for (const RangeTombstone& tombstone : buffered_tombstones_) {
        if (tombstone.sequence > manifest.flushed_sequence) tombstones.push_back(tombstone);
      }
      next->buffered_tombstones = std::make_shared<const RangeTombstoneList>(tombstones);
    }
  }

  // From here on nothing may fail.
  ledger_ = std::move(ledger);
  if (sees_less) {
    ++ledger_epoch_;
    settled_buffers_.clear();
  }
  if (flushed != nullptr) {
    flushed_ = manifest.flushed_sequence;
    base_tallies_ = std::move(base_tallies);
    flush_queue_.pop_front();
    background_status_ = absl::OkStatus();  // at once: who waited for this flush may write again
    settled_buffers_.erase(settled_buffers_.begin(), settled_buffers_.upper_bound(flushed_));
    full_buffers_.store(static_cast<int>(flush_queue_.size()), std::memory_order_relaxed);
    if (!flushed->buffer->range_tombstones().empty()) buffered_tombstones_ = std::move(tombstones);
    std::erase_if(left_generations_, [&](const LeftGeneration& left) { return left.left_at <= forgotten; });
  }
  PublishLocked(next);
  UpdatePressureLocked();
  compaction_due_ = settling_due_ = true;
  compaction_work_.Signal();
  room_.SignalAll();
}

// The failure may have come after the rename. On a full disk, retries must not fill it with what they leave behind.
void Engine::DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) const {
  const absl::StatusOr<Manifest> on_disk =
      GuardMemory("reading the manifest", [this] { return ReadManifest(file_system_, directory_); });
  if (!on_disk.ok()) return;  // orphans, if that is what they are, go at the next open
  TryWithMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::unordered_set<uint64_t> before = SegmentNumbers(manifest_), after = SegmentNumbers(*on_disk);
    const std::unordered_set<uint64_t> values_before = ValueFileNumbers(manifest_), values_after = ValueFileNumbers(*on_disk);
    for (const std::shared_ptr<Segment>& segment : segments) {
      const uint64_t number = segment->info().number;
      if (before.contains(number) || after.contains(number)) continue;
      segment->MarkObsolete(&remover_);
      for (const std::shared_ptr<ValueFile>& file : segment->value_files()) {
        if (!values_before.contains(file->number()) && !values_after.contains(file->number())) file->MarkObsolete(&remover_);
      }
    }
  });
}

// --- The log ---------------------------------------------------------------------------------------------------------------

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
  TryWithMemory([&] { spdlog::critical("writes are refused, reads go on: {}", log_->status().ToString()); });
  room_.SignalAll();
}

}  // namespace varve
