// Engine: the commit of a batch (design: one short critical section that validates, numbers, logs
// and makes visible).
#include <algorithm>
#include <utility>

#include "db/engine/engine.h"
#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr int kOptimisticTries = 8;  // of Update, before it takes its keys' stripes
constexpr int kTriesAlone = 1000;    // and with them; others may still write the keys blindly
// Of a batch: what their records meet in the write buffer is asked for.
constexpr size_t kEntriesAhead = 8;
constexpr size_t kFewestBytesOfBufferPerOperation = 8;
// Each replaced state holds its own list of range tombstones.
constexpr size_t kMaxRetiredStates = 64;
// Range tombstones at which a write buffer counts as full,.
constexpr size_t kMaxBufferedTombstones = 1024;
constexpr size_t kMaxBufferedSwitches = 1024;  // and generations left, which take no memory in it
// For a large record, before others have to wait for it.
constexpr int kTriesToPrepareLog = 8;

// The log holds what is not in segments yet, and each synced group takes whole pages. Beyond this
// the active buffer is flushed early, for each so many bytes since the last flush (which leaves the
// file in use).
uint64_t MaxLogGrowth(const EngineOptions& options) {
  return 4 * std::max<uint64_t>({options.write_buffer_size, options.log_file_size, 1u << 20});
}

// The strongest that one of the batch's namespaces asks for: they are lost or kept together.
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

}  // namespace

absl::StatusOr<CommitResult> Engine::SubmitInside(const WriteOptions& options, WriteBatch* batch) {
  VARVE_RETURN_IF_ERROR(batch->status());
  if (batch->clones_namespace()) [[unlikely]]
    return SubmitClone(options, batch);
  bool limited = false;
  absl::StatusOr<CommitResult> result = TrySubmit(options, batch, nullptr, &limited);
  return limited ? SubmitWithinQuotas(options, batch) : result;
}

absl::StatusOr<CommitResult> Engine::TrySubmit(const WriteOptions& options, WriteBatch* batch,
                                               const SequenceNumber* checked, bool* limited) {
  Commit commit(batch);
  // A mark takes no room, and those who leave it are readers.
  if (checked == nullptr && !commit.MarksClock()) {
    VARVE_RETURN_IF_ERROR(WaitForRoom(commit.record_size(), commit.adds_data()));
  }
  const auto new_generation = [this](NamespaceId) { return NewGeneration(); };
  std::optional<Published<SuperVersion>::Pin> pin(state_.Acquire());
  VARVE_RETURN_IF_ERROR(commit.Resolve((*pin)->namespaces, new_generation));
  *limited = (*pin)->namespaces.has_rules() && MustCheckQuotas(**pin, commit, checked);
  if (*limited) return CommitResult{};
  for (const Commit::Operation& operation : commit.operations())
    (*pin)->active->Prefetch(operation.hash);
  const SuperVersion* resolved_against = pin->get();
  RangeCheck ranges(commit);
  if (!ranges.empty()) VARVE_RETURN_IF_ERROR(LookAhead(&ranges));

  absl::MutexLock lock(&commit_mutex_);
  VARVE_RETURN_IF_ERROR(PrepareLogLocked(commit));
  if (turn_ != options.exclusive_write && !commit.MarksClock()) [[unlikely]] {
    if (!options.waits_for_exclusive_write) return absl::CancelledError("somebody has the turn");
    // Whoever has the turn may need the quotas: nobody waits for it while holding them.
    *limited = checked != nullptr;
    if (*limited) return CommitResult{};
    pin.reset();  // nothing is kept in place while waiting for others
    resolved_against = nullptr;
    WaitForTurn(options.exclusive_write);
  }
  if (present_.get() != resolved_against) {
    VARVE_RETURN_IF_ERROR(commit.Resolve(present_->namespaces, new_generation));
    *limited = present_->namespaces.has_rules() && MustCheckQuotas(*present_, commit, checked);
    if (*limited) return CommitResult{};
  }
  pin.reset();
  Durability durability =
      options.override_sync ? options.sync : sync_.load(std::memory_order_relaxed);
  if (present_->namespaces.has_rules() && !options.override_sync) [[unlikely]]
    durability = DurabilityAmong(present_->namespaces, commit, durability);
  const bool gated = durability == Durability::kAlways;
  VARVE_RETURN_IF_ERROR(CheckWritable(commit));
  VARVE_RETURN_IF_ERROR(CheckConditions(commit));
  if (!ranges.empty()) VARVE_RETURN_IF_ERROR(CheckRanges(commit, &ranges));
  if (commit.operations().empty()) return CommitResult{last_sequence_, kNoSequence};
  if (absl::Status reserved =
          log_->Reserve(commit.record_size(), /*for_deletes=*/!commit.adds_data());
      !reserved.ok()) {
    if (absl::IsUnavailable(reserved)) NoteLogFailureLocked();
    return reserved;
  }

  FitActiveBufferLocked(commit.operations().size());
  const SequenceNumber first = last_sequence_ + 1;
  const SequenceNumber last = last_sequence_ + commit.operations().size();
  const std::string_view record = commit.Seal(first);
  std::unique_ptr<StateChange> change = PrepareLocked(commit.operations());
  uint32_t log_offset = 0;
  if (absl::Status appended =
          log_->Append(record, first, last, durability, commit.has_large() ? &log_offset : nullptr);
      !appended.ok()) {
    if (absl::IsUnavailable(appended)) NoteLogFailureLocked();
    return appended;
  }
  if (commit.has_large()) commit.NoteLogOffset(log_offset);
  // The batch is in: from here on nothing may fail.
  last_sequence_ = last;
  ApplyLocked(commit.operations(), gated, std::move(change));
  visible_.store(last);
  commit.Committed();
  counters_.writes.Add(last - first + 1);
  if (!ActiveBufferIsFullLocked()) return CommitResult{last, gated ? last : kNoSequence};
  // Where there is no memory for the next buffer, the next batch tries again.
  TryWithMemory([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { RotateBufferLocked(); });
  return CommitResult{last, gated ? last : kNoSequence};
}

absl::Status Engine::PrepareLogLocked(const Commit& commit) {
  const bool for_deletes = !commit.adds_data();
  for (int i = 0;
       i < kTriesToPrepareLog && !closed_ && !log_->HasRoom(commit.record_size(), for_deletes);
       ++i) {
    commit_mutex_.Unlock();
    const absl::Status prepared = log_->Prepare(commit.record_size(), for_deletes);
    commit_mutex_.Lock();
    if (absl::IsUnavailable(prepared)) NoteLogFailureLocked();
    if (!closed_) VARVE_RETURN_IF_ERROR(prepared);
  }
  return absl::OkStatus();
}

bool Engine::ActiveBufferIsFullLocked() const {
  const WriteBuffer& active = *present_->active;
  if (active.full() || active.range_tombstones().size() >= kMaxBufferedTombstones) return true;
  const size_t left = left_generations_.size();
  return left >= kMaxBufferedSwitches &&
         left_generations_[left - kMaxBufferedSwitches].left_at >= active.first_sequence();
}

absl::Status Engine::WaitForRoom(size_t bytes, bool adds_data) {
  throttle_.Pay(bytes);
  if (full_buffers_.load(std::memory_order_relaxed) < options_.max_full_write_buffers)
    return absl::OkStatus();
  absl::MutexLock lock(&commit_mutex_);
  while (static_cast<int>(flush_queue_.size()) >= options_.max_full_write_buffers &&
         background_status_.ok() && !closed_ && !log_failed_.load()) {
    room_.Wait(&commit_mutex_);
  }
  // Deletes may be what makes room on a full disk.
  const int limit = options_.max_full_write_buffers * (adds_data ? 1 : 2);
  return static_cast<int>(flush_queue_.size()) >= limit ? RefusalLocked() : absl::OkStatus();
}

absl::Status Engine::CheckWritable(const Commit& commit) const {
  if (closed_) return absl::UnavailableError("the store is closed");
  return commit.adds_data() ? RefusalLocked() : absl::OkStatus();
}

absl::Status Engine::RefusalLocked() const {
  if (background_status_.ok() && !log_failed_.load()) return absl::OkStatus();
  // The log's end is for good, whatever else fails at present and whether or not somebody has noted
  // it yet.
  VARVE_RETURN_IF_ERROR(log_->status());
  if (background_status_.ok() || absl::IsUnavailable(background_status_))
    return UnsharedCopy(background_status_);
  // Whatever a flush fails for, nothing is lost by it, and the next try makes its files anew.
  return absl::ResourceExhaustedError(
      fmt::format("flushing fails; it is tried again, and writes resume when it succeeds: {}",
                  WordsOf(background_status_)));
}

std::unique_ptr<Engine::StateChange> Engine::PrepareLocked(
    const std::vector<Commit::Operation>& operations) {
  std::unique_ptr<StateChange> change;  // most batches need none
  const auto changed = [&change]() -> StateChange& {
    if (change == nullptr) change = std::make_unique<StateChange>();
    return *change;
  };
  size_t bytes = 0;
  std::optional<NamespaceTable> namespaces;  // a copy, only once the batch changes them
  for (const Commit::Operation& operation : operations) {
    const RecordView& record = operation.record;
    switch (record.kind) {
      case RecordKind::kValue:
        if (record.expiry_ms != 0) [[unlikely]] {
          NoteExpiringLocked(operation, &changed());
          bytes += WriteBuffer::SizeOf(
              ExpiryIndexRecord(change->expiring.back().bytes, record.sequence));
        }
        bytes += WriteBuffer::SizeOf(record);
        break;
      case RecordKind::kTombstone:
        bytes += WriteBuffer::SizeOf(record);
        break;
      case RecordKind::kClockMark:
        if (record.value.size() == sizeof(uint64_t)) {
          changed().clock_mark = std::max(changed().clock_mark, DecodeFixed64(record.value.data()));
          change->clock_mark_sequence = record.sequence;
        }
        break;
      case RecordKind::kRangeTombstone:
        changed().tombstones.push_back(
            {std::string(record.key), std::string(record.value), record.sequence});
        break;
      case RecordKind::kSwitchGeneration:
      case RecordKind::kChangeNamespace: {
        if (!namespaces) namespaces = present_->namespaces;
        for (const NamespaceId space : NamespaceTable::MovedBy(record)) {
          changed().left.push_back(
              {space, namespaces->Generation(space).value_or(kNoGeneration), record.sequence});
        }
        // A batch that it would refuse was refused before.
        namespaces->Replay(record).IgnoreError();
        for (const NamespaceBase& base : namespaces->bases().all()) {
          if (base.cut != record.sequence || log_ == nullptr) continue;
          changed().cut = std::make_unique<Cut>(Cut{base, NewCountPointLocked()});
        }
        break;
      }
    }
  }
  present_->active->Reserve(bytes, change != nullptr ? change->tombstones.size() : 0);
  if (!namespaces && (change == nullptr || change->tombstones.empty())) return change;
  changed().next = CopyStateLocked();
  if (!change->tombstones.empty()) {
    change->buffered_tombstones = change->tombstones;
    ReserveMore(&buffered_tombstones_, change->tombstones.size());
    std::vector<RangeTombstone> all = buffered_tombstones_;
    all.insert(all.end(), change->tombstones.begin(), change->tombstones.end());
    change->next->buffered_tombstones = std::make_shared<RangeTombstoneList>(std::move(all));
  }
  if (namespaces) {
    ReserveMore(&left_generations_, change->left.size());
    change->next->namespaces = *std::move(namespaces);
    change->next->namespaces_changed = operations.back().record.sequence;
  }
  return change;
}

void Engine::ApplyLocked(const std::vector<Commit::Operation>& operations, bool gated,
                         std::unique_ptr<StateChange> change) noexcept {
  WriteBuffer* const active = present_->active.get();
  const size_t ahead = std::min(kEntriesAhead, operations.size() - 1);
  for (size_t i = 0; i < operations.size() + ahead; ++i) {
    if (i < operations.size()) active->PrefetchEntry(operations[i].hash);
    if (i < ahead) continue;
    const Commit::Operation& operation = operations[i - ahead];
    const RecordKind kind = operation.record.kind;
    if (kind == RecordKind::kValue || kind == RecordKind::kTombstone) {
      active->Add(operation.record, operation.hash, gated);
    }
  }
  if (change == nullptr) [[likely]]
    return;
  ApplyExpiringLocked(*change);
  if (change->cut != nullptr) last_cut_ = std::move(change->cut);
  for (RangeTombstone& tombstone : change->tombstones)
    active->AddRangeTombstone(std::move(tombstone));
  for (RangeTombstone& tombstone : change->buffered_tombstones)
    buffered_tombstones_.push_back(std::move(tombstone));
  for (const LeftGeneration& left : change->left) {
    left_generations_.push_back(left);
    last_clear_.store(left.left_at);
  }
  if (change->next != nullptr) PublishLocked(std::move(change->next));
}

std::shared_ptr<SuperVersion> Engine::CopyStateLocked() {
  state_.PrepareReplace();
  return std::make_shared<SuperVersion>(*present_);
}

void Engine::PublishLocked(std::shared_ptr<const SuperVersion> next) noexcept {
  present_ = next;
  expires_by_default_.store(next->namespaces.expires_by_default(), std::memory_order_relaxed);
  // Normally the flush thread's work, but it may be busy for long.
  if (state_.Replace(std::move(next)) > kMaxRetiredStates) state_.Reclaim();
  reclaim_due_ = true;
  flush_work_.Signal();
}

void Engine::FitActiveBufferLocked(size_t operations) {
  if (operations * kFewestBytesOfBufferPerOperation <= options_.write_buffer_size) return;
  if (last_sequence_ >= present_->active->first_sequence()) RotateBufferLocked();
  const std::shared_ptr<SuperVersion> next = CopyStateLocked();
  next->active = std::make_shared<WriteBuffer>(options_.write_buffer_size, last_sequence_ + 1,
                                               operations, buffer_memory_);
  PublishLocked(next);
}

void Engine::RotateBufferLocked() {
  const std::shared_ptr<WriteBuffer> full = present_->active;
  const std::shared_ptr<SuperVersion> next = CopyStateLocked();
  next->full.insert(next->full.begin(), full);
  next->active = std::make_shared<WriteBuffer>(options_.write_buffer_size, last_sequence_ + 1, 0,
                                               buffer_memory_);
  const uint64_t log_bytes = log_ == nullptr ? 0 : log_->statistics().bytes_taken;
  flush_queue_.push_back(
      {full, present_->namespaces, log_bytes - std::exchange(log_bytes_at_rotation_, log_bytes)});
  // From here on nothing may fail.
  full->Seal(last_sequence_);
  buffer_memory_->KeepUpTo(options_.write_buffer_size);
  full_buffers_.store(static_cast<int>(flush_queue_.size()), std::memory_order_relaxed);
  PublishLocked(next);
  UpdatePressureLocked();
}

void Engine::BoundLog() {
  if (full_buffers_.load(std::memory_order_relaxed) != 0) return;  // a flush is on its way
  if (log_->live_bytes() <= log_bytes_at_flush_.load() + MaxLogGrowth(options_)) return;
  absl::MutexLock lock(&commit_mutex_);
  if (flush_queue_.empty() && last_sequence_ >= present_->active->first_sequence() &&
      !log_failed_.load())
    RotateBufferLocked();
}

absl::StatusOr<CommitResult> Engine::Write(const WriteOptions& options, WriteBatch* batch) {
  VARVE_ASSIGN_OR_RETURN(const CommitResult result, Submit(options, batch));
  // Whoever waits syncs for all when nobody else is at it, which saves the hop to the log's thread.
  VARVE_RETURN_IF_ERROR(result.durable_after == kNoSequence
                            ? log_->Push()
                            : log_->WaitUntilDurable(result.durable_after));
  return result;
}

void Engine::WriteAsync(const WriteOptions& options, WriteBatch* batch,
                        std::function<void(absl::StatusOr<CommitResult>)> done) {
  // Whoever waits for a batch that is committed has his place already.
  AsyncWrites place;
  if (!TryWithMemory(
          [&] { place.emplace(kNoSequence, std::make_pair(CommitResult{}, nullptr)); })) {
    return done(OutOfMemory("committing a batch"));
  }
  absl::StatusOr<CommitResult> result = Submit(options, batch);
  if (!result.ok()) return done(std::move(result));
  if (result->durable_after == kNoSequence) {
    const absl::Status pushed = log_->Push();
    return pushed.ok() ? done(std::move(result)) : done(pushed);
  }
  {
    AsyncWrites::node_type write = place.extract(place.begin());
    write.key() = result->durable_after;
    write.mapped() = {*result, std::move(done)};
    absl::MutexLock lock(&async_mutex_);
    async_writes_.insert(std::move(write));
  }
  // A failed push reaches the callback through the log's listener.
  if (!log_->Push().ok() || log_->durable_sequence() >= result->durable_after)
    CompleteAsyncWrites();
}

void Engine::CompleteAsyncWrites() {
  const SequenceNumber durable = log_->durable_sequence();
  const absl::Status log_status = log_->status();
  AsyncWrites completed;
  {
    absl::MutexLock lock(&async_mutex_);
    const auto end = log_status.ok() ? async_writes_.upper_bound(durable) : async_writes_.end();
    while (async_writes_.begin() != end)
      completed.insert(completed.end(), async_writes_.extract(async_writes_.begin()));
  }
  for (auto& [durable_after, write] : completed) {
    auto& [result, done] = write;
    if (durable_after <= durable) {
      done(result);
    } else {
      done(log_status);
    }
  }
}

absl::StatusOr<CommitResult> Engine::UpdateInside(
    const WriteOptions& options, absl::Span<const std::string_view> keys,
    absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  WriteBatch batch;
  const auto attempt = [&]() -> absl::StatusOr<CommitResult> {
    batch.Clear();
    VARVE_RETURN_IF_ERROR(decide(&batch));
    return Submit(options, &batch);
  };
  for (int i = 0; i < kOptimisticTries; ++i) {
    absl::StatusOr<CommitResult> result = attempt();
    if (!absl::IsAborted(result.status())) return result;
  }
  std::vector<size_t> stripes;
  for (const std::string_view key : keys) stripes.push_back(HashKey(key) % kKeyStripes);
  std::sort(stripes.begin(), stripes.end());
  stripes.erase(std::unique(stripes.begin(), stripes.end()), stripes.end());
  std::vector<std::unique_ptr<absl::MutexLock>> locks;
  for (const size_t stripe : stripes)
    locks.push_back(std::make_unique<absl::MutexLock>(&key_stripes_[stripe]));
  absl::StatusOr<CommitResult> result = absl::AbortedError("not tried");
  for (int i = 0; i < kTriesAlone && absl::IsAborted(result.status()); ++i) result = attempt();
  return result;
}

}  // namespace varve
