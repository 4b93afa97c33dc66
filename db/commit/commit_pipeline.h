// The commit pipeline takes batches into the store. Their order is given by one thread after the
// other, under the commit lock; what takes longer they do side by side. A batch goes through these
// steps:
//
//   1. Room. The writer pays for the pressure that merges are under (db/commit/throttle.h), and
//      waits while too many full write buffers wait for their flush.
//   2. Resolve. The writer replaces the batch's namespace ids by generations and hashes its keys,
//      by the present super version and without a lock. It refuses a batch that is not within one
//      group of keys (db/commit/key_groups.h). It prefetches the keys' buckets of the
//      active buffer and checks conditions on ranges against all but the last few writes.
//   3. Join. The writer joins a commit group (db/commit/commit_groups.h), whose leader holds the
//      commit lock and takes steps 4 and 5 for it, after repeating step 2 if the super version is
//      another one by now. A batch that has to wait, for the log to prepare room on disk or for
//      another writer's exclusive write (db/commit/exclusive_writes.h), leaves the group and goes
//      on alone, releasing the lock meanwhile.
//   4. Check. The batch is refused if the store is closed, if flushes or the log fail and it adds
//      data, or if one of its conditions is not met any more.
//   5. Number and append. The operations get the next sequence numbers, all the memory that they
//      need is taken, and the log gives the record its place, behind a time mark if the last one is
//      a second old (db/history/time_map.h). A failure before the log has accepted the record
//      leaves everything as it was. Where changes are retained, their recorder gets a copy then
//      (db/changes/change_recorder.h).
//   6. Apply and show. From here on nothing can fail: the writer copies the record to its place,
//      unless the leader has done so (Submission::log_copy_later), puts the operations into the
//      active buffer, beside other writers, and the visible sequence moves to the last one
//      (db/version/show_queue.h). So a sequence is visible only if every lower one is, and if the
//      log has it. A batch is applied under the lock, after all before it, if it has conditions,
//      changes more than the active buffer, fills it, is very large, or if changes are retained.
//   7. Rotate. A full active buffer goes into the flush queue. Without memory for the next one the
//      next batch tries again.
//
// A batch is visible before it is durable; CommitResult::durable_after tells what a writer has to
// wait for. Several batches become durable in one group of the log (db/log/log.h), so the lock is
// never held across a sync.
//
// Thread-safety: all functions may be called on any thread; those whose name ends in Locked need
// the commit lock (SuperVersions::mutex()).
// Invariants:
//   (1) sequence numbers are given in the order in which the log takes batches, without gaps;
//   (2) no batch is applied that the log has not accepted;
//   (3) once the log has failed, no batch that adds data is accepted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/changes/change_recorder.h"
#include "db/commit/batch_applier.h"
#include "db/commit/commit.h"
#include "db/commit/commit_groups.h"
#include "db/commit/data_bound.h"
#include "db/commit/exclusive_writes.h"
#include "db/commit/range_check.h"
#include "db/commit/throttle.h"
#include "db/expiry/store_clock.h"
#include "db/history/time_map.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "util/base/sharded_counter.h"
#include "varve/store.h"

namespace varve {

// The parts of the engine that the pipeline needs. Everything outlives the pipeline.
struct CommitEnvironment {
  SuperVersions* versions = nullptr;
  LogView* log = nullptr;
  BatchApplier* applier = nullptr;
  // Returns a new generation for a namespace that a batch creates or empties; kNoGeneration: none
  // is left.
  std::function<NamespaceGeneration()> new_generation;
  // Returns how far merges are behind, as CompactionPicker::Debt() has it.
  std::function<double(const Version&)> merge_debt;
  Durability sync = Durability::kAlways;  // of batches that don't bring their own
  int most_full_buffers = 1;              // writers wait while as many wait for their flush
  const DataBound* data_bound = nullptr;  // null: data has no limit
  TimeMap* times = nullptr;               // null: nobody asks when a batch was committed
  const StoreClock* clock = nullptr;      // of the time map
  ChangeRecorder* changes = nullptr;      // null: no changes are retained
  uint64_t most_log_growth = UINT64_MAX;  // bytes after which the active buffer is flushed early
};

// A batch that another store has committed, which this one follows.
struct ReplicatedBatch {
  WriteBatch* batch = nullptr;
  uint64_t instant_ms = 0;  // when it was committed there
  // The generations of the namespaces that it creates, clones and empties, in order.
  absl::Span<const NamespaceGeneration> generations;
};

// A batch that a check of quotas lets through, and what the check found out.
struct CheckedBatch {
  // The change of namespaces as of which the batch is within their quotas.
  SequenceNumber namespaces_changed = kNoSequence;
  int64_t added_bytes = 0;  // what it adds to the data at most
};

class CommitPipeline {
 public:
  explicit CommitPipeline(CommitEnvironment environment);
  ~CommitPipeline();

  // Commits the batch. `checked` is null, or what a check of quotas found out. If the quotas have
  // to be checked first, or again, the function only sets `*must_check`. Throws std::bad_alloc;
  // then nothing was done.
  [[nodiscard]] absl::StatusOr<CommitResult> TrySubmit(const WriteOptions& options,
                                                       WriteBatch* batch,
                                                       const CheckedBatch* checked,
                                                       bool* must_check)
      ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Commits a batch of the primary. Nobody else writes, so it needs no check of quotas and no
  // condition. Throws std::bad_alloc; then nothing was done.
  // Requires: LogView::follows(); one caller at a time.
  [[nodiscard]] absl::StatusOr<CommitResult> SubmitReplicated(const ReplicatedBatch& replicated)
      ABSL_LOCKS_EXCLUDED(versions_->mutex());
  void SetSync(Durability sync) { sync_.store(sync, std::memory_order_relaxed); }

  ExclusiveWrites& exclusive_writes() { return exclusive_writes_; }

  // Appends to the log that an ingest was committed: `record` is the sealed batch record that tells
  // of it. Its operations `first` to `last` touch no write buffer. An error changes nothing.
  // Requires: `first` follows the last operation; the caller publishes what was ingested before it
  // releases the commit lock.
  [[nodiscard]] absl::Status AppendIngestLocked(std::string_view record, SequenceNumber first,
                                                SequenceNumber last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());

  // Puts the active buffer into the flush queue and waits until segments hold everything written
  // so far. With `leaves_log_file` the log goes on in its next file in one step with the rotation.
  // So all values that the new segments point to lie in files that the log has left.
  // Requires: with `leaves_log_file`, Log::PrepareToLeaveFile() returned OK.
  [[nodiscard]] absl::Status FlushAll(bool leaves_log_file = false)
      ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Has the log go on in its next file; with `rotates` the active buffer is put into the flush
  // queue in the same step, unless it is empty, without waiting for the flush. Returns false, and
  // does nothing, if a flush is on its way, the log has failed, or there is no next file.
  [[nodiscard]] absl::StatusOr<bool> LeaveLogFile(bool rotates)
      ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Rotates the active buffer if the log has grown too much since the last flush, when it had
  // `log_bytes_at_flush`: small synced writes take a page each. Throws std::bad_alloc.
  void BoundLog(uint64_t log_bytes_at_flush) ABSL_LOCKS_EXCLUDED(versions_->mutex());

  // The flusher calls NoteFlush() after each try to flush; the version set calls
  // NoteInstalledLocked() after each install.
  void NoteFlush(const absl::Status& status) ABSL_LOCKS_EXCLUDED(versions_->mutex());
  void NoteInstalledLocked(bool flushed) noexcept;
  // Returns whether a buffer is being flushed and flushes do not fail.
  bool IsFlushing() const ABSL_LOCKS_EXCLUDED(versions_->mutex());
  void UpdatePressure() noexcept ABSL_LOCKS_EXCLUDED(versions_->mutex());
  double pressure() const { return throttle_.pressure(); }
  // Return the parts of the pressure that waiting flushes make and that merges make.
  double flush_pressure() const {
    return static_cast<double>(versions_->full_buffers()) / environment_.most_full_buffers;
  }
  // Returns for how long writers were slowed down or waited for room, altogether.
  uint64_t stall_nanos() const { return throttle_.stall_nanos(); }
  double merge_pressure() const { return merge_pressure_.load(std::memory_order_relaxed); }
  // Returns whether the last try to flush found no space.
  bool flush_lacks_space() const { return flush_lacks_space_.load(std::memory_order_relaxed); }
  // Refuses writes once the log has failed.
  void NoteLogFailure() ABSL_LOCKS_EXCLUDED(versions_->mutex());

  // Refuses batches from now on. Returns false if the pipeline was closed already.
  bool Close() ABSL_LOCKS_EXCLUDED(versions_->mutex());
  bool IsClosed() const ABSL_LOCKS_EXCLUDED(versions_->mutex());

  uint64_t writes() const { return writes_.Sum(); }
  uint64_t conflicts() const { return conflicts_.Sum(); }
  const CommitGroups& groups() const { return groups_; }

 private:
  class Submission;

  // Step 1: pays and waits for room.
  absl::Status WaitForRoom(size_t bytes, bool adds_data) ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Leads a commit group, which begins with the caller's own batch.
  void Lead(Submission* submission) ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Takes steps 4 and 5 for a member of the group, unless it has to wait for something.
  void ServeLocked(Submission* submission) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  // Takes steps 3 to 6 on the writer's thread for a batch that may wait. Throws std::bad_alloc.
  absl::StatusOr<CommitResult> CommitAlone(Submission* submission)
      ABSL_LOCKS_EXCLUDED(versions_->mutex());
  // Commits a batch that need not wait, once it is resolved by the present super version.
  absl::StatusOr<CommitResult> CommitReadyLocked(Submission* submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  // Steps 4 to 7. With `submission` its writer may be left to apply it (step 6).
  absl::StatusOr<CommitResult> CommitLocked(const WriteOptions& options, Commit* commit,
                                            RangeCheck* ranges, Submission* submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  // Steps 5 and 6. Returns the sequence of the last operation.
  absl::StatusOr<SequenceNumber> AppendLocked(Commit* commit, Durability durability,
                                              Submission* submission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  // Has the log make room for the record if none is ready, and releases the lock meanwhile.
  absl::Status PrepareLogLocked(const Commit& commit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  absl::Status CheckWritableLocked(const Commit& commit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  absl::Status CheckChangesLocked(const Commit& commit, RangeCheck* ranges) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  absl::Status FlushAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  // Returns why writes are refused while flushes or the log fail.
  absl::Status RefusalLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  Durability DurabilityLocked(const WriteOptions& options, const Commit& commit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  void RotateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  void TryRotateLocked() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  void UpdatePressureLocked() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());
  void NoteLogFailureLocked() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions_->mutex());

  const CommitEnvironment environment_;
  SuperVersions* const versions_;
  LogView& log_;
  std::atomic<Durability> sync_;
  Throttle throttle_;
  std::atomic<double> merge_pressure_{0};
  std::atomic<bool> flush_lacks_space_{false};

  bool closed_ ABSL_GUARDED_BY(versions_->mutex()) = false;
  absl::Status flush_status_ ABSL_GUARDED_BY(versions_->mutex());  // why flushes fail at present
  // Signalled when a buffer was flushed or the reason to wait is gone.
  absl::CondVar room_;
  ExclusiveWrites exclusive_writes_;
  CommitGroups groups_;

  mutable ShardedCounter writes_, conflicts_;
};

// Returns the most bytes that the log may grow by between two flushes. It holds what is not in
// segments yet, and each synced group takes whole pages.
uint64_t MostLogGrowth(const EngineOptions& options);

// Returns whether the batch has to be checked against quotas (db/commit/quotas.h) before it is
// committed; `checked` as in CommitPipeline::TrySubmit.
bool MustCheckQuotas(const SuperVersion& state, const Commit& commit, const CheckedBatch* checked);

}  // namespace varve
