// The expiry sweeper removes keys whose time is over, so that merges can give their space back.
// Readers hide such keys at once (db/expiry/store_clock.h has the rule); the sweeper's thread
// deletes them as any writer would, by the expiry index (db/format/expiry_index.h):
//
//   1. A write of a key that expires puts an entry into the index, in the same batch. The sweeper
//      notes, for each width of entry, before which instant no entry is due.
//   2. When an entry may be due, a sweep reads the entries of that width in the order of time. It
//      removes an entry, and with it the key in every namespace that sees it, if the key has
//      expired there, on the condition that nobody wrote either meanwhile.
//   3. The thread then rests three times as long as it worked.
//
// A count removes everything that has expired first (SweepAll), as counts are of records.
//
// Thread-safety: all functions but the Start functions may be called on any thread; those whose
// name ends in Locked need the commit lock. sweep_mutex_ is held across a whole sweep and its I/O
// and is acquired before the key counter's and the commit lock. The listener is called under it.
// Invariants: no entry of the index that is still to be looked at is due before due_from_.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "db/expiry/store_clock.h"
#include "db/format/expiry_index.h"
#include "db/history/horizons.h"
#include "db/version/read_point.h"
#include "util/os/steady_condition.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

class ExpirySweeper {
 public:
  // A record of the expiry index, made before its batch is in the log.
  struct IndexEntry {
    std::string bytes;  // its tree key and value
    uint64_t hash;      // of the tree key
    SequenceNumber sequence;
    int width;
    uint64_t due_ms;
  };
  // Commits a batch unless another writer has the exclusive write. Returns statuses, never throws.
  using Submit = std::function<absl::StatusOr<CommitResult>(WriteBatch*)>;

  ExpirySweeper(SuperVersions* versions, LogView* log, StoreClock* clock);

  // While one of `horizons` stands, an entry stays until it is due: a clone of the past may see an
  // older record that has the same entry.
  // Requires: no thread uses the sweeper yet; `horizons` outlive it.
  void KeepEntriesFor(const Horizons* horizons) { horizons_ = horizons; }
  // Notes whether segments hold a part of the index (`indexed`); then entries may be due already.
  void StartLocked(bool indexed);
  // Starts the thread.
  void Start(Submit submit);
  // Stops the thread; a sweep that has begun is finished.
  void Stop();

  // Returns the entry of a value that expires.
  IndexEntry NewEntry(const RecordView& record) const;
  static RecordView RecordOf(const IndexEntry& entry);
  // Puts the entry into the active buffer.
  // Requires: the buffer has room for it.
  void AddLocked(const IndexEntry& entry, WriteBuffer* active) noexcept;

  // Sets the listener. When this returns, no thread calls the listener before any more.
  void SetListener(Store::ExpiryListener listener) ABSL_LOCKS_EXCLUDED(sweep_mutex_);
  // Removes nothing until then; a time that has come ends a pause.
  void PauseUntil(SteadyTime until);
  // Removes all that has expired by now, of all namespaces; nothing during a pause.
  [[nodiscard]] absl::Status SweepAll() ABSL_LOCKS_EXCLUDED(sweep_mutex_);
  // Returns whether a key of the range, which nobody has removed yet, expired after `after_ms` and
  // at `by_ms` or before.
  struct KeySpan {
    NamespaceId space;
    std::string_view lower;  // user keys: [lower, upper); an empty `upper` means no end
    std::string_view upper;
  };
  [[nodiscard]] absl::StatusOr<bool> AnyExpired(const KeySpan& span, uint64_t after_ms,
                                                uint64_t by_ms) const
      ABSL_LOCKS_EXCLUDED(sweep_mutex_);
  // Returns the lock that a sweep holds: while another thread holds it, the sweeper removes
  // nothing.
  absl::Mutex& sweeping() const ABSL_LOCK_RETURNED(sweep_mutex_) { return sweep_mutex_; }

  uint64_t expired_keys() const { return expired_keys_.load(); }
  // Returns how many operations the sweeper has written for removals.
  uint64_t operations() const { return operations_.load(); }

 private:
  static constexpr uint64_t kNeverDue = ~uint64_t{0};
  // One pass over the entries of one width.
  struct Pass {
    int width = 0;
    uint64_t now_ms = 0;
    bool early = false;              // also what isn't due
    uint64_t from_ms = 0;            // no entry is due before
    uint64_t last_due_ms = 0;        // the entries up to here are looked at
    uint64_t resume_ms = kNeverDue;  // no entry that is left is due before
    bool more = false;               // it stopped before the end
  };
  // The batch that removes some entries and their keys.
  struct Removal {
    WriteBatch batch;
    std::set<std::pair<NamespaceId, std::string_view>> expired;  // views into the entries' keys
    bool more = false;  // the batch was full before the end of the entries
  };

  bool Paused() const;
  void Loop();
  // Waits until an entry may be due and `rest_until` is over. Returns false once stopped.
  bool WaitUntilDue(SteadyTime rest_until);
  // Removes some of what has expired by `now_ms`: what is due, and with `early` also what isn't.
  // Returns false if there is no more.
  absl::StatusOr<bool> Sweep(uint64_t now_ms, bool early)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  // Returns whether the key of the entry is one of AnyExpired().
  absl::StatusOr<bool> HasExpired(const SuperVersion& state, SequenceNumber at,
                                  const ExpiryIndexEntry& entry, const KeySpan& span,
                                  uint64_t after_ms, uint64_t by_ms) const;
  absl::Status SweepWidth(Pass* pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  absl::Status SweepEntries(Pass* pass) ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  // Removes the entries, and their keys where these have expired. If a writer came between, removes
  // each entry in a batch of its own.
  absl::Status RemoveExpired(absl::Span<const std::string> index_keys, uint64_t now_ms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);
  absl::Status FillRemoval(absl::Span<const std::string> index_keys, uint64_t now_ms,
                           Removal* removal) const;
  // Adds the removal of one entry and of its keys. Returns false when the batch is full.
  absl::StatusOr<bool> AddEntryTo(Removal* removal, const ReadPoint& point,
                                  const std::string& index_key, uint64_t now_ms) const;
  absl::Status TellOfRemoved(const Removal& removal, const CommitResult& committed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(sweep_mutex_);

  SuperVersions* const versions_;
  LogView* const log_;
  StoreClock* const clock_;
  const Horizons* horizons_ = nullptr;  // null: nobody clones the past
  Submit submit_;

  mutable absl::Mutex sweep_mutex_ ABSL_ACQUIRED_BEFORE(versions_->mutex());
  Store::ExpiryListener listener_ ABSL_GUARDED_BY(sweep_mutex_);

  // By width.
  std::array<uint64_t, kExpiryWidths> due_from_ ABSL_GUARDED_BY(versions_->mutex());
  bool stopped_ ABSL_GUARDED_BY(versions_->mutex()) = false;
  SteadyTime paused_until_ ABSL_GUARDED_BY(versions_->mutex()) = SteadyTime::min();
  SteadyCondition work_;

  std::atomic<uint64_t> expired_keys_{0};
  std::atomic<uint64_t> operations_{0};
  std::thread thread_;
};

}  // namespace varve
