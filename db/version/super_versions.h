// SuperVersions owns the present SuperVersion, which readers pin, and the state that changes
// together with it: the visible sequence, the flush queue and the retired generations. Writers, the
// flusher and the version set replace the super version, one at a time, under the commit lock,
// which this class owns.
//
// Readers take no lock. They pin the present super version (structure/published.h), then take the
// visible sequence (db/version/read_point.h has the order and why it is right).
//
// Full write buffers wait in the flush queue, oldest first. The flusher is woken for each, and for
// each replaced super version, which it reclaims.
//
// Thread-safety: functions whose name ends in Locked need the commit lock, mutex(); the others may
// be called on any thread. Parts of the engine that guard their own state with the commit lock
// refer to it as `versions->mutex()` and check it with AssertHeld().
// Batches get their sequences one after the other, but are applied side by side; the show queue
// (db/version/show_queue.h) makes them visible in order. So the last sequence may be ahead of the
// visible one, even for the thread that holds the commit lock, until ShowQueue::DrainLocked() was
// called.
//
// Invariants:
//   (1) everything up to the visible sequence is in the present super version;
//   (2) the flush queue and SuperVersion::full hold the same buffers, in opposite orders;
//   (3) visible() never decreases, nor does the sequence up to which segments hold everything.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/format/range_tombstone.h"
#include "db/history/horizons.h"
#include "db/namespaces/namespace_table.h"
#include "db/version/show_queue.h"
#include "db/version/snapshot_list.h"
#include "db/version/super_version.h"
#include "structure/chunk_pool.h"
#include "structure/published.h"
#include "util/os/file_thread.h"
#include "util/os/steady_condition.h"

namespace varve {

// A write buffer that takes no more writes, with the namespaces as they were at its end.
struct FullBuffer {
  std::shared_ptr<WriteBuffer> buffer;
  NamespaceTable namespaces;
  uint64_t log_bytes = 0;  // about as many as it takes in the log, with headers and padding
};

class SuperVersions {
 public:
  // `file_thread`: makes memory for write buffers ahead (structure/chunk_pool.h); null: none does.
  // Requires: `file_thread` outlives the super versions.
  explicit SuperVersions(size_t write_buffer_size, FileThread* file_thread = nullptr);
  ~SuperVersions() { buffer_memory_->StopMaking(); }  // arenas may outlive the file thread
  SuperVersions(const SuperVersions&) = delete;
  SuperVersions& operator=(const SuperVersions&) = delete;

  // The commit lock. It is held across I/O only by a writer whose prepared room in the log other
  // writers have taken again and again.
  absl::Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // --- Readers ---
  using Pin = Published<SuperVersion>::Pin;
  Pin Acquire() const { return published_.Acquire(); }
  bool IsCurrent(const Pin& pin) const { return published_.IsCurrent(pin); }
  std::shared_ptr<const SuperVersion> Share() const { return published_.share(); }
  SequenceNumber visible() const { return visible_.load(); }
  bool expires_by_default() const { return expires_by_default_.load(std::memory_order_relaxed); }
  // Returns a snapshot of what is visible at one moment of the call.
  std::shared_ptr<const Snapshot> TakeSnapshot(NamespaceTable namespaces, uint64_t instant_ms);
  std::shared_ptr<const Snapshot> TakeSnapshotAt(SequenceNumber sequence, NamespaceTable namespaces,
                                                 uint64_t instant_ms);
  SnapshotList::Held HeldSnapshots() const { return snapshots_.List(visible_); }

  // --- Background ---
  std::shared_ptr<const Version> PresentVersion() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The length of the flush queue, for a look without the lock.
  int full_buffers() const { return full_buffers_.load(std::memory_order_relaxed); }
  // Waits until there is a buffer to flush or a super version to reclaim, until Stop() is called or
  // until `deadline`. Returns false once stopped.
  bool WaitForFlushWork(SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the front of the flush queue, if there is one. It stays there until PopFlushedLocked().
  std::optional<FullBuffer> OldestFullBuffer() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for about `rest`, or until Stop() is called.
  void RestFromFlushing(absl::Duration rest) ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Frees replaced super versions that no reader pins any more, with the write buffers and segments
  // that only they hold. Readers unpin them at the end of a read. `waits_for_others`: returns once
  // those are gone, too, that other threads are freeing.
  void Reclaim(bool waits_for_others = false);
  // Returns a function that tells whether a generation is live: a reader sees it now or in one of
  // the snapshots of `held` or at a version that `horizons` keep, or could see it again after a
  // crash that loses what is behind `durable`. Stores the forks of those generations in `*forks`,
  // and the versions that horizons keep in `*kept`.
  std::function<bool(NamespaceGeneration)> LiveGenerations(
      const SnapshotList::Held& held, SequenceNumber durable, const std::vector<Horizon>& horizons,
      NamespaceForks* forks, KeptVersions* kept) const ABSL_LOCKS_EXCLUDED(mutex_);
  ChunkPool& buffer_memory() const { return *buffer_memory_; }

  // --- With the commit lock ---
  const std::shared_ptr<const SuperVersion>& PresentLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return present_;
  }
  SequenceNumber LastSequenceLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_sequence_;
  }
  // Returns the sequence up to which segments hold everything.
  SequenceNumber FlushedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return flushed_; }
  const std::deque<FullBuffer>& FlushQueueLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return flush_queue_;
  }
  // Oldest first.
  const std::vector<RetiredGeneration>& RetiredGenerationsLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return retired_generations_;
  }
  const std::vector<RangeTombstone>& BufferedTombstonesLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return buffered_tombstones_;
  }
  // Returns the namespaces as they were at `at`: those that are there now, or whose horizon is not
  // above `at`. Where their names and options changed, these are the present ones.
  // Requires: no snapshot at `at` needs more.
  NamespaceTable NamespacesAtLocked(SequenceNumber at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the generations that were retired after `sequence`, and those that `horizons` keep.
  std::vector<NamespaceGeneration> GenerationsRetiredAfterLocked(
      SequenceNumber sequence, const std::vector<Horizon>& horizons) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Publishes the first super version: the segments of `version` and an empty buffer. `retired` are
  // the generations that horizons keep.
  // Requires: the first call; nothing was published yet.
  void StartLocked(std::shared_ptr<const Version> version, NamespaceTable namespaces,
                   SequenceNumber flushed, std::vector<RetiredGeneration> retired)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns a copy of the present super version, to be changed and published, and takes the memory
  // that publishing needs.
  std::shared_ptr<SuperVersion> CopyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: CopyLocked() made `next`, and nothing was published since.
  void PublishLocked(std::shared_ptr<const SuperVersion> next) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes that the caller is about to put the operations up to `last` into the active buffer.
  // Requires: `last` follows the present last sequence.
  void AdvanceLocked(SequenceNumber last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the queue of the batches that have their sequences and are not visible yet. A caller
  // that looks into the active buffer, or takes the last sequence for what readers see, drains it
  // first.
  ShowQueue& show_queue() const { return show_queue_; }

  // Takes the memory for so many more range tombstones and retired generations.
  void ReserveLocked(size_t tombstones, size_t retired) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: ReserveLocked() made room for both.
  void AddLocked(std::vector<RangeTombstone> tombstones,
                 const std::vector<RetiredGeneration>& retired)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool ActiveBufferIsFullLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ActiveBufferIsEmptyLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_sequence_ < present_->active->first_sequence();
  }
  // Returns whether a batch of so many operations would overcrowd the active buffer's index. Then
  // MakeActiveBufferLocked() makes a buffer for it.
  bool NeedsOwnBuffer(size_t operations) const;
  void MakeActiveBufferLocked(size_t operations) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts the active buffer into the flush queue and makes a new one. `log_bytes` is how many bytes
  // the log has taken in so far.
  // Requires: the active buffer is not empty.
  void RotateLocked(uint64_t log_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the oldest buffer from the flush queue: segments now hold everything up to `flushed`.
  // `tombstones` are the range tombstones in the buffers that remain. Forgets generations that were
  // retired up to `forgotten` and that no horizon keeps.
  void PopFlushedLocked(SequenceNumber flushed, std::vector<RangeTombstone> tombstones,
                        SequenceNumber forgotten, const std::vector<Horizon>& horizons) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  friend struct IngestStep;

  const size_t write_buffer_size_;
  // Keeps the chunks of flushed buffers for the next ones.
  const std::shared_ptr<ChunkPool> buffer_memory_;

  mutable absl::Mutex mutex_;
  SequenceNumber last_sequence_ ABSL_GUARDED_BY(mutex_) = kNoSequence;
  SequenceNumber flushed_ ABSL_GUARDED_BY(mutex_) = kNoSequence;
  // The super version that published_ shows to readers.
  std::shared_ptr<const SuperVersion> present_ ABSL_GUARDED_BY(mutex_);
  std::deque<FullBuffer> flush_queue_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::vector<RangeTombstone> buffered_tombstones_ ABSL_GUARDED_BY(mutex_);
  std::vector<RetiredGeneration> retired_generations_ ABSL_GUARDED_BY(mutex_);  // oldest first
  uint64_t log_bytes_at_rotation_ ABSL_GUARDED_BY(mutex_) = 0;  // when the active buffer began
  bool reclaim_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyCondition flush_work_;

  std::atomic<SequenceNumber> visible_{kNoSequence};
  mutable ShowQueue show_queue_{&visible_};
  std::atomic<int> full_buffers_{0};
  std::atomic<bool> expires_by_default_{false};  // in some namespace
  Published<SuperVersion> published_{nullptr};
  mutable SnapshotList snapshots_;
};

// The step in which an ingest becomes visible: its segments hold all of its operations, so none of
// them touches a write buffer.
//
// Thread-safety: as SuperVersions; the commit lock is held during the whole step.
struct IngestStep {
  // Returns whether `first` is the next sequence, and segments hold everything before it.
  static bool MayTake(const SuperVersions& versions, SequenceNumber first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions.mutex());
  // Gives `next` an empty buffer for what follows the operation `last`.
  static void Prepare(const SuperVersions& versions, SequenceNumber last, SuperVersion* next);
  // Publishes and shows `next`.
  // Requires: MayTake() and Prepare(); CopyLocked() made `next`.
  static void Publish(SuperVersions* versions, SequenceNumber last,
                      std::shared_ptr<const SuperVersion> next) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(versions->mutex());
};

}  // namespace varve
