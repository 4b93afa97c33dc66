#include "db/expiry/expiry_sweeper.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "db/iterators/super_version_iterator.h"
#include "db/version/lookup.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/exception_status.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr size_t kKeysPerBatch = 256;
constexpr size_t kBytesPerBatch = 1u << 20;       // of keys
constexpr size_t kMostBytesPerBatch = 16u << 20;  // of the batch, with what is removed from clones
constexpr int kRestsPerWork = 3;
constexpr int kTriesAlone = 100;  // for a key that others keep writing
// Somebody may set the machine's clock meanwhile, so the thread looks again after this time.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);
constexpr absl::Duration kPauseAfterTrouble = absl::Seconds(1);

// Leaves a mark for entries that are removed because they are due by `now_ms`. A clone of the past
// may see their records. It leaves out those that had expired when it was made, so its clock must
// not show less than `now_ms` then, even if the machine's clock is set back during a restart: with
// their entries gone, nobody would ever remove the records.
absl::Status MarkDue(const StoreClock& clock, uint64_t now_ms,
                     const ExpirySweeper::Submit& submit) {
  if (clock.mark() >= now_ms) return absl::OkStatus();
  WriteBatch mark;
  mark.MarkClock(now_ms);
  return submit(&mark).status();
}

}  // namespace

ExpirySweeper::ExpirySweeper(SuperVersions* versions, LogView* log, StoreClock* clock)
    : versions_(versions), log_(log), clock_(clock) {
  due_from_.fill(kNeverDue);
}

void ExpirySweeper::StartLocked(bool indexed) {
  versions_->mutex().AssertHeld();
  VARVE_ASSERT(!thread_.joinable());
  due_from_.fill(indexed ? 0 : kNeverDue);
}

void ExpirySweeper::Start(Submit submit) {
  VARVE_ASSERT(!thread_.joinable());
  VARVE_ASSERT(submit != nullptr);
  submit_ = std::move(submit);
  thread_ = std::thread([this] { Loop(); });
}

void ExpirySweeper::Stop() {
  {
    absl::MutexLock lock(&versions_->mutex());
    stopped_ = true;
    work_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

// --- Writing -------------------------------------------------------------------------------------

ExpirySweeper::IndexEntry ExpirySweeper::NewEntry(const RecordView& record) const {
  VARVE_ASSERT(record.expiry_ms != 0);
  std::string bytes;
  const RecordView made = ExpiryIndexRecord(record, clock_->NowMillis(), &bytes);
  const ExpiryIndexEntry entry = *DecodeExpiryIndexKey(UserKeyOf(made.key));
  const uint64_t hash = HashKey(made.key);
  return {std::move(bytes), hash, record.sequence, entry.width, entry.due_ms};
}

RecordView ExpirySweeper::RecordOf(const IndexEntry& entry) {
  return ExpiryIndexRecord(entry.bytes, entry.sequence);
}

void ExpirySweeper::AddLocked(const IndexEntry& entry, WriteBuffer* active) noexcept {
  versions_->mutex().AssertHeld();
  VARVE_ASSERT(entry.width >= 0 && entry.width < kExpiryWidths);
  active->Add(RecordOf(entry), entry.hash, /*readers_wait=*/false);
  uint64_t& due_from = due_from_[static_cast<size_t>(entry.width)];
  if (entry.due_ms >= due_from) return;
  due_from = entry.due_ms;
  work_.Signal();
}

// --- Removing ------------------------------------------------------------------------------------

bool ExpirySweeper::WaitUntilDue(SteadyTime rest_until) {
  absl::MutexLock lock(&versions_->mutex());
  for (;;) {
    if (stopped_) return false;
    const SteadyTime idle_until = std::max(rest_until, paused_until_);
    if (SteadyNow() < idle_until) {
      work_.WaitWithDeadline(&versions_->mutex(), idle_until);
      continue;
    }
    const uint64_t due = *std::min_element(due_from_.begin(), due_from_.end());
    const uint64_t now_ms = clock_->NowMillis();
    if (due <= now_ms) return true;
    if (due == kNeverDue) {
      work_.Wait(&versions_->mutex());
    } else {
      const absl::Duration left = absl::Milliseconds(std::min<uint64_t>(due - now_ms, 1000));
      work_.WaitWithTimeout(&versions_->mutex(), std::min(left, kLongestSleep));
    }
  }
}

void ExpirySweeper::Loop() {
  NameThread("varve-expiry");
  YieldToForeground();
  SteadyTime rest_until = SteadyTime::min();
  for (bool in_trouble = false; WaitUntilDue(rest_until);) {
    const SteadyTime begin = SteadyNow();
    const absl::Status status = GuardMemory("removing what has expired", [this]() -> absl::Status {
      absl::MutexLock lock(&sweep_mutex_);
      return Sweep(clock_->NowMillis(), /*early=*/false).status();
    });
    if (!status.ok() && !in_trouble && !absl::IsUnavailable(status) && !absl::IsCancelled(status)) {
      TryWithMemory([&] { spdlog::error("expiry: {}; it is tried again", status.ToString()); });
    }
    in_trouble = !status.ok();
    rest_until = in_trouble ? SteadyNow() + kPauseAfterTrouble
                            : SteadyNow() + kRestsPerWork * (SteadyNow() - begin);
  }
}

void ExpirySweeper::SetListener(Store::ExpiryListener listener) {
  absl::MutexLock lock(&sweep_mutex_);
  listener_ = std::move(listener);
}

void ExpirySweeper::PauseUntil(SteadyTime until) {
  absl::MutexLock lock(&versions_->mutex());
  paused_until_ = until;
  work_.SignalAll();
}

bool ExpirySweeper::Paused() const {
  absl::MutexLock lock(&versions_->mutex());
  return log_->follows() || SteadyNow() < paused_until_;
}

absl::Status ExpirySweeper::SweepAll() {
  if (Paused()) return absl::OkStatus();
  absl::MutexLock lock(&sweep_mutex_);
  const uint64_t now_ms = clock_->NowMillis();
  for (bool more = true; more;) {
    VARVE_ASSIGN_OR_RETURN(more, Sweep(now_ms, /*early=*/true));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ExpirySweeper::Sweep(uint64_t now_ms, bool early) {
  std::array<uint64_t, kExpiryWidths> due_from;
  {
    absl::MutexLock lock(&versions_->mutex());
    due_from = due_from_;
  }
  bool more = false;
  for (int width = 0; width < kExpiryWidths; ++width) {
    Pass pass{.width = width, .now_ms = now_ms, .early = early};
    // What expires by now is due within the width of its entry.
    pass.last_due_ms = early ? now_ms + (uint64_t{1} << width) - 1 : now_ms;
    if (due_from[static_cast<size_t>(width)] > pass.last_due_ms) continue;
    VARVE_RETURN_IF_ERROR(SweepWidth(&pass));
    more |= pass.more;
  }
  return more;
}

absl::Status ExpirySweeper::SweepWidth(Pass* pass) {
  VARVE_ASSERT(pass->width >= 0 && pass->width < kExpiryWidths);
  const auto place = static_cast<size_t>(pass->width);
  {
    absl::MutexLock lock(&versions_->mutex());
    // No entry is due before this instant, but for those that writers add from here on.
    pass->from_ms = std::exchange(due_from_[place], kNeverDue);
  }
  absl::Status status;
  try {
    status = SweepEntries(pass);
  } catch (...) {
    status = StatusOfException("removing what has expired");
  }
  absl::MutexLock lock(&versions_->mutex());
  due_from_[place] = std::min(due_from_[place], status.ok() ? pass->resume_ms : pass->from_ms);
  // The caller of SweepAll may be the one that sweeps. Then the thread may have looked meanwhile,
  // when no entry seemed due.
  work_.Signal();
  return status;
}

absl::Status ExpirySweeper::SweepEntries(Pass* pass) {
  std::shared_ptr<const SuperVersion> state;
  SequenceNumber at;
  {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point,
                           BeginRead(*versions_, *log_, {.space = kExpirySpace}));
    state = point.state->shared_from_this();
    at = point.sequence;
  }
  const NamespaceForks forks = state->namespaces.forks();
  const std::unique_ptr<Iterator> entries = NewSuperVersionIterator(
      std::move(state),
      {.at = at,
       .lower = std::string(
           TreeKey(kExpiryGeneration, ExpiryIndexBound(pass->width, pass->from_ms)).view()),
       .upper =
           std::string(TreeKey(kExpiryGeneration, ExpiryIndexBound(pass->width + 1, 0)).view())});
  std::vector<std::string> keys;
  size_t bytes = 0;
  for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
    const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(entries->key());
    if (!entry) continue;
    if (entry->due_ms > pass->now_ms) pass->resume_ms = std::min(pass->resume_ms, entry->due_ms);
    if (entry->due_ms > pass->last_due_ms) break;
    // The newest record with this entry is still to expire; a record of the key that has expired
    // has another entry, unless it is an older one that a clone sees.
    if (entry->due_ms > pass->now_ms && ExpiryInIndex(entries->value()) > pass->now_ms &&
        !forks.IsParent(GenerationOf(entry->tree_key))) {
      continue;
    }
    if (keys.size() == kKeysPerBatch || bytes >= kBytesPerBatch) {
      VARVE_RETURN_IF_ERROR(RemoveExpired(keys, pass->now_ms));
      keys.clear();
      bytes = 0;
      if (!pass->early) {
        pass->resume_ms = entry->due_ms;
        pass->more = true;
        break;
      }
    }
    keys.emplace_back(entries->key());
    bytes += entries->key().size();
  }
  VARVE_RETURN_IF_ERROR(entries->status());
  return RemoveExpired(keys, pass->now_ms);
}

// A sweep that is under way has taken the instants before which nothing is due, so this waits for
// its end.
absl::StatusOr<bool> ExpirySweeper::AnyExpired(const KeySpan& span, uint64_t after_ms,
                                               uint64_t by_ms) const {
  absl::MutexLock sweep_lock(&sweep_mutex_);
  std::array<uint64_t, kExpiryWidths> due_from;
  {
    absl::MutexLock lock(&versions_->mutex());
    due_from = due_from_;
  }
  std::shared_ptr<const SuperVersion> state;
  SequenceNumber at;
  {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point,
                           BeginRead(*versions_, *log_, {.space = kExpirySpace}));
    state = point.state->shared_from_this();
    at = point.sequence;
  }
  for (int width = 0; width < kExpiryWidths; ++width) {
    // What expires by then is due within the width of its entry.
    const uint64_t last_due_ms = by_ms + (uint64_t{1} << width) - 1;
    const uint64_t from_ms = due_from[static_cast<size_t>(width)];
    if (from_ms > last_due_ms) continue;
    const std::unique_ptr<Iterator> entries = NewSuperVersionIterator(
        state,
        {.at = at,
         .lower = std::string(TreeKey(kExpiryGeneration, ExpiryIndexBound(width, from_ms)).view()),
         .upper = std::string(
             TreeKey(kExpiryGeneration, ExpiryIndexBound(width, last_due_ms + 1)).view())});
    for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
      const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(entries->key());
      if (!entry) continue;
      VARVE_ASSIGN_OR_RETURN(const bool expired,
                             HasExpired(*state, at, *entry, span, after_ms, by_ms));
      if (expired) return true;
    }
    VARVE_RETURN_IF_ERROR(entries->status());
  }
  return false;
}

absl::StatusOr<bool> ExpirySweeper::HasExpired(const SuperVersion& state, SequenceNumber at,
                                               const ExpiryIndexEntry& entry, const KeySpan& span,
                                               uint64_t after_ms, uint64_t by_ms) const {
  const std::string_view key = UserKeyOf(entry.tree_key);
  if (key < span.lower || (!span.upper.empty() && key >= span.upper)) return false;
  for (const ManifestNamespace& space :
       state.namespaces.NamespacesSeeing(GenerationOf(entry.tree_key))) {
    if (space.id != span.space) continue;
    Lookup lookup(space.generation, key);
    VARVE_ASSIGN_OR_RETURN(const bool is_live, FindLive(state, at, &lookup));
    const uint64_t expiry_ms = is_live ? lookup.record.expiry_ms : 0;
    if (expiry_ms > after_ms && expiry_ms <= by_ms) return true;
  }
  return false;
}

absl::StatusOr<bool> ExpirySweeper::AddEntryTo(Removal* removal, const ReadPoint& point,
                                               const std::string& index_key,
                                               uint64_t now_ms) const {
  const SuperVersion& state = *point.state;
  const ExpiryIndexEntry entry = *DecodeExpiryIndexKey(index_key);
  const std::string_view user_key = UserKeyOf(entry.tree_key);
  bool is_needed = entry.due_ms > now_ms && horizons_ != nullptr && horizons_->any();
  for (const ManifestNamespace& space :
       state.namespaces.NamespacesSeeing(GenerationOf(entry.tree_key))) {
    Lookup lookup(space.generation, user_key);
    const absl::StatusOr<bool> is_live = FindLive(state, point.sequence, &lookup);
    // If a segment is damaged, the sweeper removes the entry: reads of its key answer an error, and
    // the sweeper is not to try again for ever.
    if (!is_live.ok() && !absl::IsDataLoss(is_live.status())) return is_live.status();
    if (!is_live.value_or(false) || lookup.record.expiry_ms == 0) continue;
    if (lookup.record.expiry_ms <= now_ms) {
      if (removal->batch.bytes() >= kMostBytesPerBatch) return false;
      // Several entries may speak of one key.
      if (!removal->expired.emplace(space.id, user_key).second) continue;
      removal->batch.Delete(user_key, space.id, WriteCause::kExpired);
      removal->batch.RequireUnchanged(user_key, point.sequence, space.id);
    } else if (entry.due_ms > now_ms) {
      is_needed = true;  // its time is still to come
    }
  }
  if (is_needed) return true;
  removal->batch.Delete(index_key, kExpirySpace);
  removal->batch.RequireUnchanged(index_key, point.sequence, kExpirySpace);
  return true;
}

absl::Status ExpirySweeper::FillRemoval(absl::Span<const std::string> index_keys, uint64_t now_ms,
                                        Removal* removal) const {
  removal->batch.Clear();
  removal->expired.clear();
  removal->more = false;
  VARVE_ASSIGN_OR_RETURN(const ReadPoint point,
                         BeginRead(*versions_, *log_, {.space = kExpirySpace}));
  for (const std::string& index_key : index_keys) {
    VARVE_ASSIGN_OR_RETURN(const bool fits, AddEntryTo(removal, point, index_key, now_ms));
    removal->more = !fits;
    if (!fits) break;
  }
  return removal->batch.status();
}

absl::Status ExpirySweeper::TellOfRemoved(const Removal& removal, const CommitResult& committed) {
  expired_keys_ += removal.expired.size();
  // Readers see that the keys are gone even if the log fails now, so caches must be told.
  const absl::Status pushed = log_->get()->Push();
  if (listener_ == nullptr) return pushed;
  for (const auto& [space, key] : removal.expired) listener_(space, key, committed.durable_after);
  return pushed;
}

absl::Status ExpirySweeper::RemoveExpired(absl::Span<const std::string> index_keys,
                                          uint64_t now_ms) {
  if (index_keys.empty()) return absl::OkStatus();
  VARVE_ASSERT(index_keys.size() <= kKeysPerBatch);
  Removal removal;
  for (int tries = 0; tries < kTriesAlone; ++tries) {
    if (Paused()) return absl::CancelledError("expiry: a pause began");
    VARVE_RETURN_IF_ERROR(FillRemoval(index_keys, now_ms, &removal));
    if (removal.batch.empty()) return absl::OkStatus();
    const size_t operations = removal.batch.size();
    if (horizons_ != nullptr && horizons_->any())
      VARVE_RETURN_IF_ERROR(MarkDue(*clock_, now_ms, submit_));
    // The writer that holds the exclusive write may be counting, and then it waits for this sweep.
    const absl::StatusOr<CommitResult> committed = submit_(&removal.batch);
    if (committed.ok()) {
      operations_ += operations;
      VARVE_RETURN_IF_ERROR(TellOfRemoved(removal, *committed));
      if (!removal.more) return absl::OkStatus();
      tries = -1;  // the sweeper does not look again at what it has removed
      continue;
    }
    if (!absl::IsAborted(committed.status()) && !IsNoSuchNamespace(committed.status()))
      return committed.status();
    if (index_keys.size() == 1) continue;
    for (size_t i = 0; i < index_keys.size(); ++i)
      VARVE_RETURN_IF_ERROR(RemoveExpired(index_keys.subspan(i, 1), now_ms));
    return absl::OkStatus();
  }
  return absl::AbortedError("expiry: a key is written again and again");
}

}  // namespace varve
