// Engine: keys that expire. Readers hide them at once (db/expiry/store_clock.h has the rule); a
// thread removes them, so that merges can give the space back: it deletes what the index
// (db/format/expiry_index.h) says is due, as any writer would, and rests three times as long as it
// worked. Whoever counts all keys first removes what has expired, as the counts are of records.
#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "db/engine/engine.h"
#include "db/engine/lookup.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
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
// The machine's clock may be set meanwhile.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);
constexpr absl::Duration kPauseAfterTrouble = absl::Seconds(1);

}  // namespace

// --- Hiding --------------------------------------------------------------------------------------

bool Engine::NeedsInstant(const Lookup& lookup, uint64_t* instant_ms) const {
  if (!lookup.found || lookup.record.expiry_ms == 0 || *instant_ms != 0) [[likely]]
    return false;
  const uint64_t now_ms = clock_.NowMillis();
  if (lookup.record.expiry_ms > now_ms) return false;
  *instant_ms = now_ms;
  return true;
}

SequenceNumber Engine::WitnessExpiry(uint64_t expiry_ms) {
  if (expiry_ms > clock_.mark() && !log_failed_.load()) {
    WriteBatch batch;
    batch.MarkClock(std::max(expiry_ms, clock_.NowMillis()));
    if (Submit({}, &batch).ok()) {
      ++counters_.clock_marks;
      ++counters_.own_operations;
      log_->Push().IgnoreError();  // who waits for the gate hears of it
    }
  }
  if (!log_failed_.load()) return GateOf(clock_mark_sequence_.load());
  // Without a log that takes it, nobody can promise anything about the next start, nor wait for a
  // mark that was on its way.
  if (expiry_ms > clock_.mark()) clock_.Mark(std::max(expiry_ms, clock_.NowMillis()));
  return kNoSequence;
}

ExpiryWitness Engine::WitnessFor(const ReadOptions& options) {
  return [this, waits = options.wait_until_durable](
             uint64_t expiry_ms) -> absl::StatusOr<SequenceNumber> {
    const SequenceNumber durable_after = WitnessExpiry(expiry_ms);
    if (!waits || durable_after == kNoSequence) return durable_after;
    absl::Status waited = WaitUntilDurable(durable_after);
    if (waited.ok()) return durable_after;
    NoteLogFailure();
    if (!log_failed_.load()) return waited;
    return kNoSequence;
  };
}

// --- Writing -------------------------------------------------------------------------------------

void Engine::NoteExpiringLocked(const Commit::Operation& operation, StateChange* change) const {
  const RecordView& record = operation.record;
  std::string bytes;
  const RecordView made = ExpiryIndexRecord(record, clock_.NowMillis(), &bytes);
  const ExpiryIndexEntry entry = *DecodeExpiryIndexKey(UserKeyOf(made.key));
  const uint64_t hash = HashKey(made.key);
  change->expiring.push_back({std::move(bytes), hash, record.sequence, entry.width, entry.due_ms});
}

void Engine::ApplyExpiringLocked(const StateChange& change) noexcept {
  for (const Expiring& expiring : change.expiring) {
    present_->active->Add(ExpiryIndexRecord(expiring.bytes, expiring.sequence), expiring.hash,
                          /*gated=*/false);
    uint64_t& due_from = due_from_[static_cast<size_t>(expiring.width)];
    if (expiring.due_ms >= due_from) continue;
    due_from = expiring.due_ms;
    expiry_work_.Signal();
  }
  if (change.clock_mark_sequence == kNoSequence) return;
  // first: whoever sees the mark sees its gate.
  clock_mark_sequence_.store(change.clock_mark_sequence);
  clock_.Mark(change.clock_mark);
}

// --- Removing ------------------------------------------------------------------------------------

uint64_t Engine::NextDueLocked() const {
  return *std::min_element(due_from_.begin(), due_from_.end());
}

void Engine::ExpiryLoop() {
  NameThread("varve-expiry");
  YieldToForeground();
  SteadyTime rest_until = SteadyTime::min();
  for (bool in_trouble = false;;) {
    {
      absl::MutexLock lock(&commit_mutex_);
      for (;;) {
        if (stopping_) return;
        if (SteadyNow() < rest_until) {
          expiry_work_.WaitWithDeadline(&commit_mutex_, rest_until);
          continue;
        }
        const uint64_t due = NextDueLocked();
        const uint64_t now_ms = clock_.NowMillis();
        if (due <= now_ms) break;
        if (due == kNeverDue) {
          expiry_work_.Wait(&commit_mutex_);
        } else {
          const absl::Duration left = absl::Milliseconds(std::min<uint64_t>(due - now_ms, 1000));
          expiry_work_.WaitWithTimeout(&commit_mutex_, std::min(left, kLongestSleep));
        }
      }
    }
    const SteadyTime begin = SteadyNow();
    const absl::Status status = GuardMemory("removing what has expired", [this]() -> absl::Status {
      absl::MutexLock lock(&sweep_mutex_);
      return Sweep(clock_.NowMillis(), /*early=*/false).status();
    });
    if (!status.ok() && !in_trouble && !absl::IsUnavailable(status) && !absl::IsCancelled(status)) {
      TryWithMemory([&] { spdlog::error("expiry: {}; it is tried again", status.ToString()); });
    }
    in_trouble = !status.ok();
    rest_until = in_trouble ? SteadyNow() + kPauseAfterTrouble
                            : SteadyNow() + kRestsPerWork * (SteadyNow() - begin);
  }
}

void Engine::SetExpiryListener(ExpiryListener listener) {
  absl::MutexLock lock(&sweep_mutex_);
  expiry_listener_ = std::move(listener);
}

absl::Status Engine::SweepAll() {
  absl::MutexLock lock(&sweep_mutex_);
  const uint64_t now_ms = clock_.NowMillis();
  for (bool more = true; more;) {
    VARVE_ASSIGN_OR_RETURN(more, Sweep(now_ms, /*early=*/true));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Engine::Sweep(uint64_t now_ms, bool early) {
  std::array<uint64_t, kExpiryWidths> due_from;
  {
    absl::MutexLock lock(&commit_mutex_);
    due_from = due_from_;
  }
  bool more = false;
  for (int width = 0; width < kExpiryWidths; ++width) {
    Sweeping sweep{.width = width, .now_ms = now_ms, .early = early};
    // What expires by now is due within the width of its entry.
    sweep.last_due_ms = early ? now_ms + (uint64_t{1} << width) - 1 : now_ms;
    if (due_from[static_cast<size_t>(width)] > sweep.last_due_ms) continue;
    VARVE_RETURN_IF_ERROR(SweepWidth(&sweep));
    more |= sweep.more;
  }
  return more;
}

absl::Status Engine::SweepWidth(Sweeping* sweep) {
  const auto place = static_cast<size_t>(sweep->width);
  {
    absl::MutexLock lock(&commit_mutex_);
    // Nothing is due before, but for what is written from here on.
    sweep->from_ms = std::exchange(due_from_[place], kNeverDue);
  }
  const absl::Status status =
      GuardMemory("removing what has expired",
                  [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return SweepEntries(sweep); });
  absl::MutexLock lock(&commit_mutex_);
  due_from_[place] = std::min(due_from_[place], status.ok() ? sweep->resume_ms : sweep->from_ms);
  // The thread may have looked while nothing seemed due: it isn't always the one that sweeps.
  expiry_work_.Signal();
  return status;
}

absl::Status Engine::SweepEntries(Sweeping* sweep) {
  std::shared_ptr<const SuperVersion> state;
  SequenceNumber at;
  {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead({.space = kExpirySpace}));
    state = point.state->shared_from_this();
    at = point.sequence;
  }
  const NamespaceBases bases = state->namespaces.bases();
  const std::unique_ptr<Iterator> entries = MakeIterator(
      std::move(state), at, /*fill_cache=*/false,
      std::string(
          TreeKey(kExpiryGeneration, ExpiryIndexBound(sweep->width, sweep->from_ms)).view()),
      std::string(TreeKey(kExpiryGeneration, ExpiryIndexBound(sweep->width + 1, 0)).view()),
      /*with_values=*/true);
  std::vector<std::string> keys;
  size_t bytes = 0;
  for (entries->SeekToFirst(); entries->Valid(); entries->Next()) {
    const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(entries->key());
    if (!entry) continue;
    if (entry->due_ms > sweep->now_ms) sweep->resume_ms = std::min(sweep->resume_ms, entry->due_ms);
    if (entry->due_ms > sweep->last_due_ms) break;
    // Where the newest record with this entry goes on living, one that has expired has another
    // entry. A clone may have an older one.
    if (entry->due_ms > sweep->now_ms && ExpiryInIndex(entries->value()) > sweep->now_ms &&
        !bases.IsBase(GenerationOf(entry->tree_key))) {
      continue;
    }
    if (keys.size() == kKeysPerBatch || bytes >= kBytesPerBatch) {
      VARVE_RETURN_IF_ERROR(RemoveExpired(keys, sweep->now_ms));
      keys.clear();
      bytes = 0;
      if (!sweep->early) {
        sweep->resume_ms = entry->due_ms;
        sweep->more = true;
        break;
      }
    }
    keys.emplace_back(entries->key());
    bytes += entries->key().size();
  }
  VARVE_RETURN_IF_ERROR(entries->status());
  return RemoveExpired(keys, sweep->now_ms);
}

absl::Status Engine::RemoveExpired(absl::Span<const std::string> index_keys, uint64_t now_ms) {
  if (index_keys.empty()) return absl::OkStatus();
  WriteBatch batch;
  for (int tries = 0; tries < kTriesAlone; ++tries) {
    batch.Clear();
    std::vector<std::pair<NamespaceId, std::string_view>> expired;  // keys in `index_keys`
    // The batch was full before the end.
    bool more = false;
    {
      VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead({.space = kExpirySpace}));
      const SuperVersion& state = *point.state;
      for (const std::string& index_key : index_keys) {
        if (more) break;
        const ExpiryIndexEntry entry = *DecodeExpiryIndexKey(index_key);
        const std::string_view user_key = UserKeyOf(entry.tree_key);
        bool is_needed = false;
        for (const ManifestNamespace& space :
             state.namespaces.SpacesOn(GenerationOf(entry.tree_key))) {
          Lookup lookup(space.generation, user_key);
          const absl::StatusOr<bool> is_live = FindLive(state, point.sequence, &lookup);
          // Where a segment is damaged the entry goes: its key answers an error, which is not to be
          // repeated for ever.
          if (!is_live.ok() && !absl::IsDataLoss(is_live.status())) return is_live.status();
          if (!is_live.value_or(false) || lookup.record.expiry_ms == 0) continue;
          if (lookup.record.expiry_ms <= now_ms) {
            if (batch.bytes() >= kMostBytesPerBatch) {
              is_needed = more = true;
              break;
            }
            batch.Delete(user_key, space.id);
            batch.RequireUnchanged(user_key, point.sequence, space.id);
            expired.emplace_back(space.id, user_key);
          } else if (entry.due_ms > now_ms) {
            is_needed = true;  // its time is still to come
          }
        }
        if (is_needed) continue;
        batch.Delete(index_key, kExpirySpace);
        batch.RequireUnchanged(index_key, point.sequence, kExpirySpace);
      }
    }
    VARVE_RETURN_IF_ERROR(batch.status());
    if (batch.empty()) return absl::OkStatus();
    const size_t operations = batch.size();
    // Whoever has the turn may be counting, and so waits for this.
    const absl::StatusOr<CommitResult> committed =
        Submit({.waits_for_exclusive_write = false}, &batch);
    if (committed.ok()) {
      counters_.own_operations += operations;
      // Several entries may speak of one key.
      std::sort(expired.begin(), expired.end());
      expired.erase(std::unique(expired.begin(), expired.end()), expired.end());
      counters_.expired += expired.size();
      VARVE_RETURN_IF_ERROR(log_->Push());
      if (expiry_listener_ != nullptr) {
        for (const auto& [space, key] : expired)
          expiry_listener_(space, key, committed->durable_after);
      }
      if (!more) return absl::OkStatus();
      tries = -1;  // what is removed is not looked at again
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
