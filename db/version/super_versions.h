// The super versions: the present SuperVersion, which readers pin, and all that has to change
// together with it. Writers, the flusher and the version set replace it, one at a time, under the
// commit lock, which this class owns.
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
#include "db/namespaces/namespace_table.h"
#include "db/version/snapshot_list.h"
#include "db/version/super_version.h"
#include "structure/chunk_pool.h"
#include "structure/published.h"
#include "util/os/steady_condition.h"

namespace varve {

// A write buffer that takes no more writes, with the namespaces as they were at its end.
struct FullBuffer {
  std::shared_ptr<WriteBuffer> buffer;
  NamespaceTable namespaces;
  uint64_t log_bytes = 0;  // about as many as it takes in the log, with headers and padding
};

// A generation that its namespace has left; kNoGeneration: there was no such namespace. It is known
// until the change is in segments and no snapshot is older.
struct LeftGeneration {
  NamespaceId space;
  NamespaceGeneration generation;
  SequenceNumber left_at;
};

class SuperVersions {
 public:
  explicit SuperVersions(size_t write_buffer_size);
  SuperVersions(const SuperVersions&) = delete;
  SuperVersions& operator=(const SuperVersions&) = delete;

  // The commit lock. It is never held across I/O, but for the log's Reserve where other writers
  // keep taking the room that was prepared.
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
  // Waits until there is a buffer to flush, a super version to reclaim or Stop() was called; at
  // most until `deadline`. Returns false once stopped.
  bool WaitForFlushWork(SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the front of the flush queue, if there is one. It stays there until PopFlushedLocked().
  std::optional<FullBuffer> OldestFullBuffer() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for about so long, or until Stop() is called.
  void RestFromFlushing(absl::Duration rest) ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets go of replaced super versions, which hold write buffers and segments in place; readers let
  // go of them within a read.
  void Reclaim();
  // Returns which generations somebody can see, now or in a snapshot that is held (`held`), or
  // could see again after a crash (up to `durable`), and stores their parents.
  std::function<bool(NamespaceGeneration)> LiveGenerations(const SnapshotList::Held& held,
                                                           SequenceNumber durable,
                                                           NamespaceBases* bases) const
      ABSL_LOCKS_EXCLUDED(mutex_);
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
  const std::vector<LeftGeneration>& LeftGenerationsLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return left_generations_;
  }
  const std::vector<RangeTombstone>& BufferedTombstonesLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return buffered_tombstones_;
  }
  // Returns the namespaces as they were at `at`.
  // Requires: `at` is not older than the opening of the store.
  NamespaceTable NamespacesAtLocked(SequenceNumber at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<NamespaceGeneration> GenerationsLeftAfterLocked(SequenceNumber sequence) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Begins with what the segments hold.
  // Requires: the first call; nothing was published yet.
  void StartLocked(std::shared_ptr<const Version> version, NamespaceTable namespaces,
                   SequenceNumber flushed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Returns a copy of the present super version, to be changed and published, and takes the memory
  // that publishing needs.
  std::shared_ptr<SuperVersion> CopyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: CopyLocked() made `next`, and nothing was published since.
  void PublishLocked(std::shared_ptr<const SuperVersion> next) noexcept
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The operations up to `last` are about to be put into the active buffer.
  // Requires: `last` follows the present last sequence.
  void AdvanceLocked(SequenceNumber last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Lets readers see everything up to the last sequence.
  void ShowLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Takes the memory for so many more range tombstones and left generations.
  void ReserveLocked(size_t tombstones, size_t left) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: ReserveLocked() made room for both.
  void AddLocked(std::vector<RangeTombstone> tombstones, const std::vector<LeftGeneration>& left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  bool ActiveBufferIsFullLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ActiveBufferIsEmptyLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return last_sequence_ < present_->active->first_sequence();
  }
  // A batch of so many operations would overcrowd the active buffer's index: it gets a buffer that
  // is made for it.
  bool NeedsOwnBuffer(size_t operations) const;
  void MakeActiveBufferLocked(size_t operations) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts the active buffer into the flush queue and a new one in its place. `log_bytes` is what the
  // log has taken in so far.
  // Requires: the active buffer is not empty.
  void RotateLocked(uint64_t log_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The oldest buffer of the flush queue is in segments up to `flushed`; `tombstones` are in the
  // buffers that remain. Forgets generations that were left up to `forgotten`.
  void PopFlushedLocked(SequenceNumber flushed, std::vector<RangeTombstone> tombstones,
                        SequenceNumber forgotten) noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  const size_t write_buffer_size_;
  // Keeps memory while buffers fill up.
  const std::shared_ptr<ChunkPool> buffer_memory_ = std::make_shared<ChunkPool>();

  mutable absl::Mutex mutex_;
  SequenceNumber last_sequence_ ABSL_GUARDED_BY(mutex_) = kNoSequence;
  SequenceNumber flushed_ ABSL_GUARDED_BY(mutex_) = kNoSequence;
  // The super version that published_ shows to readers.
  std::shared_ptr<const SuperVersion> present_ ABSL_GUARDED_BY(mutex_);
  std::deque<FullBuffer> flush_queue_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::vector<RangeTombstone> buffered_tombstones_ ABSL_GUARDED_BY(mutex_);
  std::vector<LeftGeneration> left_generations_ ABSL_GUARDED_BY(mutex_);  // oldest first
  uint64_t log_bytes_at_rotation_ ABSL_GUARDED_BY(mutex_) = 0;  // when the active buffer began
  bool reclaim_due_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyCondition flush_work_;

  std::atomic<SequenceNumber> visible_{kNoSequence};
  std::atomic<int> full_buffers_{0};
  std::atomic<bool> expires_by_default_{false};  // in some namespace
  Published<SuperVersion> published_{nullptr};
  mutable SnapshotList snapshots_;
};

}  // namespace varve
