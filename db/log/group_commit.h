// Group commit decides which thread makes appended records durable, and when. A group is the
// records that one write to the disk makes durable. A group is run by
//   - a log thread, which Push() wakes for writers that do not wait in the library; it runs further
//     groups as long as more records arrive;
//   - a thread in WaitUntilDurable() or TrySync(), if a group may begin, so that a lone writer does
//     not have to switch to another thread. It leaves records that arrive meanwhile to a log
//     thread.
// If the group writer takes two groups at a time, a second group begins while the first one is
// under way, once as many operations wait as the first one took: a smaller group would gain
// nothing.
//
// A thread that waits sleeps on the word of its group (the latest one begun, or the next), so that
// one call wakes exactly the threads whose group is done.
//
// Invariants: (1) The thread that ends a group has the next one begun, so that no thread waits
// while no group is under way. (2) Groups are numbered in the order in which they begin, and at
// most most_at_once() are under way.
// Thread-safety: all functions except Stop() may be called from any thread. Lock order: mutex_
// comes before all other locks of the log. No thread writes or syncs with it held.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/log/group_writer.h"
#include "db/log/log_options.h"
#include "db/log/log_progress.h"
#include "util/os/steady_condition.h"
#include "varve/types.h"

namespace varve {

class GroupCommit {
 public:
  // `on_progress` is called after each group, on the thread that ran it, without a lock of the log.
  // Requires: `writer` and `progress` outlive the group commit.
  GroupCommit(const LogOptions& options, GroupWriter* writer, LogProgress* progress,
              std::function<void()> on_progress);
  ~GroupCommit() { Stop(); }
  GroupCommit(const GroupCommit&) = delete;
  GroupCommit& operator=(const GroupCommit&) = delete;

  // Starts the log threads.
  void Start();
  // Ends the log threads, after they have run the group that they were woken for.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Wakes a log thread to make records with Durability::kAlways durable, unless another thread is
  // about to.
  void Push() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until everything up to `sequence` is durable; runs a group if none is under way.
  [[nodiscard]] absl::Status WaitUntilDurable(SequenceNumber sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs a group on this thread if one is wanted and may begin; otherwise returns false without
  // waiting.
  bool TrySync() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns whether records wait for a sync that no group has taken.
  bool SyncIsWantedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBeginGroupLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Wakes a log thread, which waits for more records to join its group; the wait counts from
  // `gathering_since`.
  void CallLogThreadLocked(SteadyTime gathering_since = SteadyNow())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndGatheringIfFullLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs one group, wakes a log thread for the next one if records wait, and wakes the threads that
  // waited. Requires: a group may begin.
  void RunGroup() ABSL_UNLOCK_FUNCTION(mutex_);
  // Waits for the group that takes `sequence`, which another thread runs.
  void AwaitGroup(SequenceNumber sequence) ABSL_UNLOCK_FUNCTION(mutex_);
  void WakeGroup(uint32_t group);
  // Waits for more records to join the group, for group_max_delay at most.
  void GatherLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does the work of each second: syncs records of Durability::kEverySecond and brings the durable
  // mark on disk up to date.
  void Tick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run(bool ticks) ABSL_LOCKS_EXCLUDED(mutex_);

  const LogOptions options_;
  GroupWriter* const writer_;
  LogProgress* const progress_;
  const std::function<void()> on_progress_;
  const int most_running_;

  absl::Mutex mutex_;
  SteadyCondition wake_;                     // the log threads
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // groups under way
  bool log_thread_is_called_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  SequenceNumber wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // the highest that a thread waits for
  SteadyTime gathering_since_ ABSL_GUARDED_BY(mutex_);
  // The latest group begun: its number, its last sequence as known from its start, and how many
  // operations it took; and the highest sequence waited for in the next group.
  uint32_t group_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber group_last_ ABSL_GUARDED_BY(mutex_);
  SequenceNumber group_size_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber next_group_wanted_ ABSL_GUARDED_BY(mutex_) = 0;

  // words_[g % kWords] is the latest group of that residue which is done. Fewer groups than words
  // are not done.
  static constexpr uint32_t kWords = 4;
  std::atomic<uint32_t> words_[kWords] = {0, uint32_t(1 - kWords), uint32_t(2 - kWords),
                                          uint32_t(3 - kWords)};
  std::vector<std::thread> threads_;
};

}  // namespace varve
