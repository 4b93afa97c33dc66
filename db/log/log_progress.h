// The progress of a log tells up to which sequence operations were appended, written to the kernel
// and made durable, and whether the log has failed.
//
// Invariants: (1) durable() <= written() <= appended(), and none of them ever moves back. (2) A
// failure is final: status() stays as it was, and durable() stays where it is.
// Thread-safety: the getters and Fail() may be called from any thread. The log's writer calls the
// functions that move a sequence, other than Durable(), with its mutex held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/log/log_options.h"
#include "db/log/sync_times.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

class LogProgress {
 public:
  // Begins with everything up to `last` durable.
  explicit LogProgress(SequenceNumber last)
      : appended_(last),
        last_{{last}, {last}, {last}},
        written_(last),
        durable_(last),
        written_mark_(last) {}

  SequenceNumber appended() const { return appended_.load(std::memory_order_acquire); }
  SequenceNumber written() const { return written_.load(std::memory_order_acquire); }
  SequenceNumber durable() const { return durable_.load(std::memory_order_acquire); }
  // Returns the highest sequence that was appended with this durability.
  SequenceNumber last(Durability durability) const {
    return last_[static_cast<size_t>(durability)].sequence.load(std::memory_order_acquire);
  }
  // Returns the highest durable mark in a block that was written.
  SequenceNumber written_mark() const { return written_mark_.load(std::memory_order_relaxed); }
  // Returns whether everything is durable and no written block says so.
  bool mark_is_behind() const { return written_mark() < durable() && durable() == appended(); }
  // Returns the bytes of records that were appended but not written.
  size_t buffered_bytes() const { return buffered_bytes_.load(std::memory_order_acquire); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Returns OK or, for good, the status of the first failure.
  absl::Status status() const;
  // Makes the log fail, unless it has failed before. Returns status().
  absl::Status Fail(const absl::Status& cause) noexcept;

  // Notes that a record of `bytes` bytes, which ends with operation `last`, was appended.
  // Requires: last > appended().
  void Appended(SequenceNumber last, Durability durability, size_t bytes);
  // Notes that records of `bytes` bytes were written; the last one ends with operation `last`.
  // Requires: written() <= last <= appended().
  void Written(SequenceNumber last, size_t bytes);
  // Notes that everything up to `last` is on disk.
  // Requires: durable() <= last <= written(). One caller at a time.
  void Durable(SequenceNumber last);
  // Notes that a block with the durable mark `mark` was written.
  void MarkWritten(SequenceNumber mark);

  // Count one group, one sync or one write.
  void CountGroup() { groups_.fetch_add(1, std::memory_order_relaxed); }
  void CountSync() { syncs_.fetch_add(1, std::memory_order_relaxed); }
  void CountWrite(size_t bytes) { bytes_written_.fetch_add(bytes, std::memory_order_relaxed); }
  SyncTimes& sync_times() { return sync_times_; }
  const SyncTimes& sync_times() const { return sync_times_; }
  // Returns the figures counted here.
  LogStatistics statistics() const;
  uint64_t bytes_appended() const { return bytes_appended_.load(std::memory_order_relaxed); }

 private:
  struct alignas(64) Last {
    std::atomic<SequenceNumber> sequence;
  };

  // Each append changes these. Threads that wait look at the others all the time, so those have
  // cache lines of their own.
  alignas(64) std::atomic<SequenceNumber> appended_;
  std::atomic<size_t> buffered_bytes_{0};
  std::atomic<uint64_t> bytes_appended_{0};
  Last last_[3];  // writers without sync look at the last one that has a sync
  alignas(64) std::atomic<SequenceNumber> written_;
  alignas(64) std::atomic<SequenceNumber> durable_;
  alignas(64) std::atomic<SequenceNumber> written_mark_;
  std::atomic<bool> failed_{false};
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> groups_{0}, syncs_{0}, bytes_written_{0};
  SyncTimes sync_times_;
};

}  // namespace varve
