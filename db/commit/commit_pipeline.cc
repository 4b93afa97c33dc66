#include "db/commit/commit_pipeline.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "db/commit/commit_conditions.h"
#include "db/commit/key_groups.h"
#include "db/format/batch_codec.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/prefetch.h"
#include "util/base/status.h"
#include "varve/replication.h"

namespace varve {
namespace {

// For a large record, before other writers have to wait for it.
constexpr int kTriesToPrepareLog = 8;

constexpr size_t kMostOperationsBesideOthers = 1024;

// Returns the strongest mode that one of the batch's namespaces asks for: its operations are lost
// or kept together.
Durability DurabilityAmong(const NamespaceTable& namespaces, const Commit& commit,
                           Durability of_store) {
  std::optional<Durability> strongest;
  NamespaceId last = kSelectedNamespace;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.space == std::exchange(last, operation.space)) continue;
    const NamespaceDescription* const space = namespaces.Description(operation.space);
    const Durability wanted = space != nullptr ? space->options.sync.value_or(of_store) : of_store;
    strongest = strongest ? std::min(*strongest, wanted) : wanted;
  }
  return strongest.value_or(of_store);
}

// Returns whether the batch may make the data more than its limit; `bound` may be null.
bool MayExceedData(const DataBound* bound, const Commit& commit, const CheckedBatch* checked) {
  if (bound == nullptr || bound->limit() == 0) return false;
  const auto most = static_cast<int64_t>(commit.record_size());
  const int64_t added = checked != nullptr ? checked->added_bytes : most;
  return commit.adds_data() && added > 0 && !bound->Fits(static_cast<uint64_t>(added));
}

// Returns the most bytes that the commit takes in the log.
size_t LogBytes(const CommitEnvironment& environment, const Commit& commit) {
  return commit.record_size() + (environment.times != nullptr ? kTimeMarkSize : 0);
}

// Returns the time mark that goes in front of the commit, whose first operation is `first`, and
// takes the memory to note it. Its sequence is kNoSequence if none is due.
TimeMark DueMark(const CommitEnvironment& environment, const Commit& commit, SequenceNumber first) {
  if (environment.times == nullptr || !environment.times->started()) return {};
  const uint64_t now =
      commit.instant_ms() != 0 ? commit.instant_ms() : environment.clock->NowMillis();
  if (!environment.times->NeedsMark(now)) return {};
  environment.times->Reserve();
  return {first, now};
}

// Makes sure of the memory that the batch needs, whose operations are numbered from `first` on:
// `*bytes` in the active buffer. Returns what it changes beside that, null if nothing.
std::unique_ptr<BatchApplier::Change> TakeMemoryLocked(const CommitEnvironment& environment,
                                                       SequenceNumber first, Commit* commit,
                                                       size_t* bytes) {
  environment.versions->mutex().AssertHeld();
  if (commit->is_plain()) [[likely]] {
    *bytes = commit->buffer_bytes();
    environment.versions->PresentLocked()->active->Reserve(*bytes, /*range_tombstones=*/0);
    return nullptr;
  }
  commit->Number(first);
  return environment.applier->PrepareLocked(commit->operations(), /*counts_clones=*/true, bytes);
}

// Returns whether the writer may apply the batch without the commit lock. What has conditions was
// checked after all before it was applied; a run of such batches would else hand the processor from
// thread to thread with the lock held. Of large batches, two that write one key again and again
// would walk over each other's versions.
bool MayApplyBesideOthers(const Commit& commit) {
  return !commit.has_conditions() && commit.size() <= kMostOperationsBesideOthers;
}

// Counts a condition that was not met.
absl::Status Counted(absl::Status status, ShardedCounter* conflicts) {
  if (!status.ok()) conflicts->Add(1);
  return status;
}

}  // namespace

uint64_t MostLogGrowth(const EngineOptions& options) {
  return 4 * std::max<uint64_t>({options.write_buffer_size, options.log_file_size, 1u << 20});
}

bool MustCheckQuotas(const SuperVersion& state, const Commit& commit, const CheckedBatch* checked) {
  if (!state.namespaces.has_rules() || !commit.adds_data()) return false;
  if (checked != nullptr) return checked->namespaces_changed != state.namespaces_changed;
  NamespaceId last = kSelectedNamespace;
  for (const Commit::Operation& operation : commit.operations()) {
    if (operation.space == std::exchange(last, operation.space)) continue;
    const NamespaceDescription* const space = state.namespaces.Description(operation.space);
    if (space != nullptr && space->options.has_quota()) return true;
  }
  return false;
}

CommitPipeline::CommitPipeline(CommitEnvironment environment)
    : environment_(std::move(environment)),
      versions_(environment_.versions),
      log_(*environment_.log),
      sync_(environment_.sync),
      exclusive_writes_(versions_) {
  VARVE_ASSERT(environment_.applier != nullptr && environment_.most_full_buffers >= 1);
}

CommitPipeline::~CommitPipeline() = default;

// --- Committing ----------------------------------------------------------------------------------

// A batch on its way from step 3 to the end. It lives on the stack of the writer's thread, and a
// leader serves it there.
//
// What the leader touches lies together, as each cache line comes from another processor.
class CommitPipeline::Submission final : public CommitGroups::Member, public ShowQueue::Batch {
 public:
  Submission(const CommitEnvironment* commit_environment, const WriteOptions& write_options,
             WriteBatch* batch, const CheckedBatch* checked_batch)
      : environment(*commit_environment),
        options(write_options),
        checked(checked_batch),
        commit(batch),
        ranges(commit) {}

  absl::Status ResolveIn(const SuperVersion& state) {
    VARVE_RETURN_IF_ERROR(commit.Resolve(
        state.namespaces, [this](NamespaceId) { return environment.new_generation(); }));
    if (!state.namespaces.declares_groups() || options.independent_keys) [[likely]]
      return absl::OkStatus();
    return CheckKeyGroups(state.namespaces, commit);
  }

  // Leaves the batch to its writer to apply. Takes the batch's memory, of so many bytes.
  void EnterLocked(SuperVersions* versions, SequenceNumber last, size_t bytes,
                   bool has_waiting_readers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions->mutex()) {
    buffer_ = versions->PresentLocked()->active.get();
    last_ = last;
    memory = buffer_->Take(bytes);
    readers_wait = has_waiting_readers;
    is_entered = true;
    versions->show_queue().EnterLocked(this);
  }

  void Apply() noexcept override {
    commit.Number(last_ + 1 - commit.size());
    BatchApplier::Insert(commit.operations(), readers_wait, buffer_, memory, &records_);
  }

  // Returns where the log notes that the writer, outside the lock, seals and copies its record,
  // which is in the cache of its processor. Returns null if the thread that holds the lock does it:
  // the batch is its own, is not plain, or belongs to a thread that sleeps, for which the log would
  // wait.
  LogCopy* log_copy_later() {
    return holds_lock || !is_awake() || !commit.is_plain() ? nullptr : &log_copy;
  }
  void CopyToLog() {
    if (log_copy.is_due()) log_copy.Make(commit.Seal(last_ + 1 - commit.size()));
  }

  // Has memory fetch what a leader touches when it serves the batch.
  void Fetch() const {
    const char* const begin = reinterpret_cast<const char*>(this);
    const char* const end = reinterpret_cast<const char*>(&ranges);
    for (const char* line = begin; line < end; line += 64) PrefetchLineForWrite(line);
  }

  const CommitEnvironment& environment;
  char* memory = nullptr;  // of the batch's records in the active buffer
  bool readers_wait = false;
  bool must_check = false;
  bool holds_lock = false;  // the batch's own thread holds the commit lock
  bool lacks_memory = false;
  bool is_entered = false;
  bool is_offered = false;  // the leader has offered its own batch to the show queue
  const WriteOptions options;
  const CheckedBatch* const checked;
  std::optional<SuperVersions::Pin> pin;  // of the super version against which it is resolved
  LogCopy log_copy;                       // is due where the log leaves the copy to the writer
  std::optional<absl::StatusOr<CommitResult>> result;  // nothing: the batch goes on alone
  Commit commit;
  RangeCheck ranges;
};

absl::StatusOr<CommitResult> CommitPipeline::TrySubmit(const WriteOptions& options,
                                                       WriteBatch* batch,
                                                       const CheckedBatch* checked,
                                                       bool* must_check) {
  Submission submission(&environment_, options, batch, checked);
  Commit& commit = submission.commit;
  // A mark takes no room, and readers leave it, who do not wait.
  if (checked == nullptr && !commit.MarksClock()) {
    VARVE_RETURN_IF_ERROR(WaitForRoom(commit.record_size(), commit.adds_data()));
  }
  const SuperVersion& state = *submission.pin.emplace(versions_->Acquire());
  VARVE_RETURN_IF_ERROR(submission.ResolveIn(state));
  *must_check = MustCheckQuotas(state, commit, checked) ||
                MayExceedData(environment_.data_bound, commit, checked);
  if (*must_check) return CommitResult{};
  for (const Commit::Operation& operation : commit.operations())
    state.active->Prefetch(operation.hash);
  if (!submission.ranges.empty()) {
    VARVE_RETURN_IF_ERROR(
        Counted(CheckRangesUnlocked(*versions_, &submission.ranges), &conflicts_));
  }

  if (groups_.Join(&submission)) Lead(&submission);
  if (submission.lacks_memory) throw std::bad_alloc();
  if (!submission.result) submission.result.emplace(CommitAlone(&submission));
  submission.CopyToLog();
  *must_check = submission.must_check;
  submission.pin.reset();
  if (submission.is_entered) {
    ShowQueue& show_queue = versions_->show_queue();
    submission.is_offered ? show_queue.Await(&submission) : show_queue.Finish(&submission);
    commit.Committed();
  }
  return *std::move(submission.result);
}

void CommitPipeline::Lead(Submission* submission) {
  absl::MutexLock lock(&versions_->mutex());
  ShowQueue& show_queue = versions_->show_queue();
  submission->holds_lock = true;
  groups_.Lead(
      submission,
      [&](CommitGroups::Member* member) {
        versions_->mutex().AssertHeld();
        if (member != submission && submission->is_entered && !submission->is_offered) {
          show_queue.OfferLocked(submission);
          submission->is_offered = true;
        }
        ServeLocked(static_cast<Submission*>(member));
      },
      [](CommitGroups::Member* member) { static_cast<Submission*>(member)->Fetch(); });
  show_queue.TakeOfferedLocked();  // TrySubmit() awaits it, without the lock
  submission->holds_lock = false;
}

void CommitPipeline::ServeLocked(Submission* submission) noexcept {
  const Commit& commit = submission->commit;
  if (!closed_ &&
      (!log_->HasRoom(LogBytes(environment_, commit), !commit.adds_data()) ||
       exclusive_writes_.KeepsOutLocked(submission->options.exclusive_write, commit.MarksClock())))
    return;
  submission->lacks_memory = !TryWithMemory([&] {
    versions_->mutex().AssertHeld();
    submission->result.emplace(CommitReadyLocked(submission));
  });
}

absl::StatusOr<CommitResult> CommitPipeline::CommitAlone(Submission* submission) {
  const WriteOptions& options = submission->options;
  absl::MutexLock lock(&versions_->mutex());
  submission->holds_lock = true;
  VARVE_RETURN_IF_ERROR(PrepareLogLocked(submission->commit));
  if (exclusive_writes_.KeepsOutLocked(options.exclusive_write, submission->commit.MarksClock())) {
    if (!options.waits_for_exclusive_write)
      return absl::CancelledError("another writer writes exclusively");
    // The exclusive writer may need the quotas, so this thread does not wait while it holds them.
    submission->must_check = submission->checked != nullptr;
    if (submission->must_check) return CommitResult{};
    submission->pin.reset();  // nothing is kept in place while waiting for others
    exclusive_writes_.AwaitOthersLocked(options.exclusive_write);
  }
  return CommitReadyLocked(submission);
}

absl::StatusOr<CommitResult> CommitPipeline::CommitReadyLocked(Submission* submission) {
  Commit& commit = submission->commit;
  if (log_.follows()) [[unlikely]]
    return FollowsPrimary();
  const SuperVersion& present = *versions_->PresentLocked();
  if (!submission->pin || submission->pin->get() != &present) {
    VARVE_RETURN_IF_ERROR(submission->ResolveIn(present));
    submission->must_check = MustCheckQuotas(present, commit, submission->checked);
    if (submission->must_check) return CommitResult{};
  }
  // Again, as others have written meanwhile.
  submission->must_check = MayExceedData(environment_.data_bound, commit, submission->checked);
  if (submission->must_check) return CommitResult{};
  return CommitLocked(submission->options, &commit, &submission->ranges, submission);
}

absl::StatusOr<CommitResult> CommitPipeline::SubmitReplicated(const ReplicatedBatch& replicated) {
  VARVE_ASSERT(log_.follows());
  Commit commit(replicated.batch);
  commit.set_instant_ms(replicated.instant_ms);
  VARVE_RETURN_IF_ERROR(replicated.batch->status());
  VARVE_RETURN_IF_ERROR(WaitForRoom(commit.record_size(), commit.adds_data()));
  RangeCheck ranges(commit);
  size_t next = 0;
  const auto generation = [&](NamespaceId) {
    return next < replicated.generations.size() ? replicated.generations[next++] : kNoGeneration;
  };
  absl::MutexLock lock(&versions_->mutex());
  VARVE_RETURN_IF_ERROR(PrepareLogLocked(commit));
  VARVE_RETURN_IF_ERROR(commit.Resolve(versions_->PresentLocked()->namespaces, generation));
  return CommitLocked({}, &commit, &ranges, /*submission=*/nullptr);
}

absl::StatusOr<CommitResult> CommitPipeline::CommitLocked(const WriteOptions& options,
                                                          Commit* commit, RangeCheck* ranges,
                                                          Submission* submission) {
  const Durability durability = DurabilityLocked(options, *commit);
  VARVE_RETURN_IF_ERROR(CheckWritableLocked(*commit));
  VARVE_RETURN_IF_ERROR(CheckChangesLocked(*commit, ranges));
  if (commit->size() == 0) return CommitResult{versions_->visible(), kNoSequence};
  if (absl::Status reserved =
          log_->Reserve(LogBytes(environment_, *commit), /*for_deletes=*/!commit->adds_data());
      !reserved.ok()) {
    if (absl::IsUnavailable(reserved)) NoteLogFailureLocked();
    return reserved;
  }
  VARVE_ASSIGN_OR_RETURN(const SequenceNumber last, AppendLocked(commit, durability, submission));
  if (versions_->ActiveBufferIsFullLocked()) TryRotateLocked();
  return CommitResult{last, durability == Durability::kAlways ? last : kNoSequence};
}

absl::StatusOr<SequenceNumber> CommitPipeline::AppendLocked(Commit* commit, Durability durability,
                                                            Submission* submission) {
  const size_t operations = commit->size();
  VARVE_ASSERT(operations > 0 && !closed_);
  if (versions_->NeedsOwnBuffer(operations)) [[unlikely]] {
    if (!versions_->ActiveBufferIsEmptyLocked()) RotateLocked();
    versions_->MakeActiveBufferLocked(operations);
  }
  const SequenceNumber first = versions_->LastSequenceLocked() + 1;
  const SequenceNumber last = versions_->LastSequenceLocked() + operations;
  LogCopy* const later = submission != nullptr ? submission->log_copy_later() : nullptr;
  const std::string_view record = later == nullptr ? commit->Seal(first) : commit->record();
  size_t bytes = 0;
  std::unique_ptr<BatchApplier::Change> change =
      TakeMemoryLocked(environment_, first, commit, &bytes);
  const TimeMark mark = DueMark(environment_, *commit, first);
  std::array<char, kTimeMarkSize> mark_bytes;
  if (mark.first != kNoSequence) mark_bytes = EncodeTimeMark(mark.first, mark.instant_ms);
  const std::string_view encoded = record.substr(kBatchHeaderSize);
  const bool is_recorded = environment_.changes != nullptr && environment_.changes->on();
  if (is_recorded) [[unlikely]]
    environment_.changes->Reserve(encoded.size());
  uint32_t log_offset = 0;
  if (absl::Status appended = log_->Append(
          record, first, last, durability, commit->has_large() ? &log_offset : nullptr,
          {mark_bytes.data(), mark.first != kNoSequence ? mark_bytes.size() : 0}, later);
      !appended.ok()) {
    if (absl::IsUnavailable(appended)) NoteLogFailureLocked();
    return appended;
  }
  if (commit->has_large()) commit->NoteLogOffset(log_offset);
  // The batch is in: from here on nothing may fail.
  if (mark.first != kNoSequence) environment_.times->Add(mark);
  if (is_recorded) [[unlikely]] {
    environment_.changes->Add({.first = first,
                               .count = static_cast<uint32_t>(operations),
                               .begins_buffer = versions_->ActiveBufferIsEmptyLocked(),
                               .operations = encoded});
  }
  versions_->AdvanceLocked(last);
  writes_.Add(operations);
  const bool readers_wait = durability == Durability::kAlways;
  // A rotation waits for all that have entered, so a batch that fills the buffer does not.
  if (submission != nullptr && change == nullptr && !is_recorded && MayApplyBesideOthers(*commit) &&
      !versions_->ActiveBufferIsFullLocked()) [[likely]] {
    submission->EnterLocked(versions_, last, bytes, readers_wait);
    return last;
  }
  // The thread that holds the lock applies this batch, so it copies the record, too.
  if (later != nullptr) later->Make(commit->Seal(first));
  versions_->show_queue().DrainLocked();
  commit->Number(first);
  environment_.applier->ApplyLocked(commit->operations(), bytes, readers_wait, std::move(change));
  versions_->show_queue().ShowLocked(versions_->LastSequenceLocked());
  commit->Committed();
  return last;
}

absl::Status CommitPipeline::AppendIngestLocked(std::string_view record, SequenceNumber first,
                                                SequenceNumber last) {
  VARVE_ASSERT(first == versions_->LastSequenceLocked() + 1 && last >= first);
  if (closed_) return absl::UnavailableError("the store is closed");
  if (log_.follows()) return FollowsPrimary();
  VARVE_RETURN_IF_ERROR(RefusalLocked());
  const std::string_view encoded = record.substr(kBatchHeaderSize);
  const bool is_recorded = environment_.changes != nullptr && environment_.changes->on();
  if (is_recorded) environment_.changes->Reserve(encoded.size());
  absl::Status status = log_->Reserve(record.size(), /*for_deletes=*/false);
  if (status.ok()) {
    status = log_->Append(record, first, last, Durability::kAlways, /*offset_in_block=*/nullptr,
                          /*mark=*/{});
  }
  if (absl::IsUnavailable(status)) NoteLogFailureLocked();
  VARVE_RETURN_IF_ERROR(status);
  if (is_recorded) {
    environment_.changes->Add({.first = first,
                               .count = static_cast<uint32_t>(last - first + 1),
                               .begins_buffer = true,
                               .operations = encoded});
  }
  writes_.Add(last - first + 1);
  return absl::OkStatus();
}

absl::Status CommitPipeline::PrepareLogLocked(const Commit& commit) {
  const bool for_deletes = !commit.adds_data();
  for (int i = 0; i < kTriesToPrepareLog && !closed_ &&
                  !log_->HasRoom(LogBytes(environment_, commit), for_deletes);
       ++i) {
    versions_->mutex().Unlock();
    const absl::Status prepared = log_->Prepare(LogBytes(environment_, commit), for_deletes);
    versions_->mutex().Lock();
    if (absl::IsUnavailable(prepared)) NoteLogFailureLocked();
    if (!closed_) VARVE_RETURN_IF_ERROR(prepared);
  }
  return absl::OkStatus();
}

Durability CommitPipeline::DurabilityLocked(const WriteOptions& options,
                                            const Commit& commit) const {
  if (options.override_sync) return options.sync;
  const Durability of_store = sync_.load(std::memory_order_relaxed);
  const NamespaceTable& namespaces = versions_->PresentLocked()->namespaces;
  if (!namespaces.has_rules()) [[likely]]
    return of_store;
  return DurabilityAmong(namespaces, commit, of_store);
}

absl::Status CommitPipeline::CheckWritableLocked(const Commit& commit) const {
  if (closed_) return absl::UnavailableError("the store is closed");
  return commit.adds_data() ? RefusalLocked() : absl::OkStatus();
}

absl::Status CommitPipeline::CheckChangesLocked(const Commit& commit, RangeCheck* ranges) const {
  if (!commit.conditions().empty())
    VARVE_RETURN_IF_ERROR(Counted(CheckConditionsLocked(*versions_, commit), &conflicts_));
  if (ranges->empty()) [[likely]]
    return absl::OkStatus();
  return Counted(CheckRangesLocked(*versions_, commit, ranges), &conflicts_);
}

absl::Status CommitPipeline::RefusalLocked() const {
  if (flush_status_.ok() && !log_.failed()) return absl::OkStatus();
  // The log's end is for good, whatever else fails at present and whether or not somebody has noted
  // it yet.
  VARVE_RETURN_IF_ERROR(log_->status());
  if (flush_status_.ok() || absl::IsUnavailable(flush_status_)) return UnsharedCopy(flush_status_);
  // Whatever a flush fails for, nothing is lost by it, and the next try makes its files anew.
  return absl::ResourceExhaustedError(
      fmt::format("flushing fails; it is tried again, and writes resume when it succeeds: {}",
                  WordsOf(flush_status_)));
}

// --- Room ----------------------------------------------------------------------------------------

absl::Status CommitPipeline::WaitForRoom(size_t bytes, bool adds_data) {
  throttle_.Pay(bytes);
  if (environment_.changes != nullptr) environment_.changes->WaitForRoom();
  const int most = environment_.most_full_buffers;
  if (versions_->full_buffers() < most) [[likely]]
    return absl::OkStatus();
  absl::MutexLock lock(&versions_->mutex());
  const SteadyTime begin = SteadyNow();
  while (static_cast<int>(versions_->FlushQueueLocked().size()) >= most && flush_status_.ok() &&
         !closed_ && !log_.failed()) {
    room_.Wait(&versions_->mutex());
  }
  throttle_.CountStall(static_cast<uint64_t>((SteadyNow() - begin) / std::chrono::nanoseconds(1)));
  // Deletes may be what makes room on a full disk.
  const int limit = most * (adds_data ? 1 : 2);
  return static_cast<int>(versions_->FlushQueueLocked().size()) >= limit ? RefusalLocked()
                                                                         : absl::OkStatus();
}

void CommitPipeline::RotateLocked() {
  versions_->RotateLocked(log_->statistics().bytes_taken);
  UpdatePressureLocked();
}

void CommitPipeline::TryRotateLocked() noexcept {
  try {
    RotateLocked();
  } catch (const std::exception&) {
    // Without memory for the next buffer the next batch tries again.
  }
}

void CommitPipeline::BoundLog(uint64_t log_bytes_at_flush) {
  if (versions_->full_buffers() != 0) return;  // a flush is on its way
  if (log_->live_bytes() <= log_bytes_at_flush + environment_.most_log_growth) return;
  absl::MutexLock lock(&versions_->mutex());
  if (versions_->FlushQueueLocked().empty() && !versions_->ActiveBufferIsEmptyLocked() &&
      !log_.failed())
    RotateLocked();
}

absl::Status CommitPipeline::FlushAll(bool leaves_log_file) {
  absl::MutexLock lock(&versions_->mutex());
  if (leaves_log_file) VARVE_RETURN_IF_ERROR(log_->LeaveFile().status());
  return FlushAllLocked();
}

absl::StatusOr<bool> CommitPipeline::LeaveLogFile(bool rotates) {
  absl::MutexLock lock(&versions_->mutex());
  if (!versions_->FlushQueueLocked().empty() || log_.failed() || closed_) return false;
  VARVE_ASSIGN_OR_RETURN(const std::optional<uint64_t> left, log_->LeaveFile());
  if (!left) return false;
  if (rotates && !versions_->ActiveBufferIsEmptyLocked()) RotateLocked();
  return true;
}

absl::Status CommitPipeline::FlushAllLocked() {
  if (!versions_->ActiveBufferIsEmptyLocked()) RotateLocked();
  const SequenceNumber target = versions_->LastSequenceLocked();
  VARVE_ASSERT(versions_->FlushedLocked() <= target);
  const auto is_done = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex()) {
    return versions_->FlushQueueLocked().empty() || versions_->FlushedLocked() >= target;
  };
  while (!is_done() && flush_status_.ok() && !closed_ && !log_.failed())
    room_.Wait(&versions_->mutex());
  if (is_done()) return absl::OkStatus();
  if (closed_) return absl::UnavailableError("the store is closed");
  return flush_status_.ok() ? log_->status() : UnsharedCopy(flush_status_);
}

void CommitPipeline::NoteFlush(const absl::Status& status) {
  absl::MutexLock lock(&versions_->mutex());
  flush_status_ = status;
  flush_lacks_space_.store(absl::IsResourceExhausted(status), std::memory_order_relaxed);
  room_.SignalAll();
}

void CommitPipeline::NoteInstalledLocked(bool flushed) noexcept {
  versions_->mutex().AssertHeld();
  if (flushed) {
    flush_status_ = absl::OkStatus();  // at once, so that waiting writers go on
    flush_lacks_space_.store(false, std::memory_order_relaxed);
  }
  UpdatePressureLocked();
  room_.SignalAll();
}

bool CommitPipeline::IsFlushing() const {
  absl::MutexLock lock(&versions_->mutex());
  return !versions_->FlushQueueLocked().empty() && flush_status_.ok();
}

void CommitPipeline::UpdatePressure() noexcept {
  absl::MutexLock lock(&versions_->mutex());
  UpdatePressureLocked();
}

void CommitPipeline::UpdatePressureLocked() noexcept {
  const double flushes =
      static_cast<double>(versions_->FlushQueueLocked().size()) / environment_.most_full_buffers;
  double merges = 0;
  const Version& version = *versions_->PresentLocked()->version;
  TryWithMemory([&] { merges = environment_.merge_debt(version); });
  VARVE_ASSERT(flushes >= 0 && merges >= 0);
  merge_pressure_.store(merges, std::memory_order_relaxed);
  throttle_.set_pressure(std::max(flushes, merges));
}

void CommitPipeline::NoteLogFailure() {
  if (log_.failed() || log_->status().ok()) return;
  absl::MutexLock lock(&versions_->mutex());
  NoteLogFailureLocked();
}

void CommitPipeline::NoteLogFailureLocked() noexcept {
  if (!log_.NoteFailure()) return;
  VARVE_ASSERT(log_.failed() && !log_->status().ok());
  TryWithMemory(
      [&] { spdlog::critical("writes are refused, reads go on: {}", log_->status().ToString()); });
  room_.SignalAll();
}

bool CommitPipeline::Close() {
  absl::MutexLock lock(&versions_->mutex());
  room_.SignalAll();
  return !std::exchange(closed_, true);
}

bool CommitPipeline::IsClosed() const {
  absl::MutexLock lock(&versions_->mutex());
  return closed_;
}

}  // namespace varve
