// Group commit decides who makes what durable, and when. A group is what one trip to the disk makes
// durable. It is run by
//   - a log thread, called by Push(), for requests that are parked: it goes on while more has
//     arrived;
//   - a thread in WaitUntilDurable() or TrySync(), where a group may begin: a lone writer pays for
//     no change of threads. What arrives meanwhile it leaves to a log thread.
// Where the group writer takes two groups at a time, a second one begins while one is under way,
// once as much as that one took is waiting: a smaller one would gain nothing.
//
// A thread that waits sleeps on the word of its group (the latest one begun, or the next), so that
// one call wakes exactly the threads whose group is done.
//
// Invariants: (1) Whoever ends a group sees to it that the next one begins: no thread waits while
// none is under way. (2) Groups are numbered in the order in which they begin, and at most
// most_at_once() are under way.
// Thread-safety: all functions may be called from any thread, but for Stop(). Lock order: mutex_
// stands above all others of the log; nothing is written with it held.
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
  // Ends the log threads. A group that they were called for is run first.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Has a log thread make durable what was appended in a mode that syncs at once, if no other
  // thread is about to.
  void Push() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until everything up to `sequence` is durable; runs a group if none is under way.
  [[nodiscard]] absl::Status WaitUntilDurable(SequenceNumber sequence) ABSL_LOCKS_EXCLUDED(mutex_);
  // Runs a group on this thread if one is wanted and may begin. Returns false, without having
  // waited, if not.
  bool TrySync() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Returns whether something waits that no group has taken.
  bool SyncIsWantedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBeginGroupLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls a log thread, which gathers company for a group since `gathering_since`.
  void CallLogThreadLocked(SteadyTime gathering_since = SteadyNow())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndGatheringIfFullLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs one group, sees to the next one, and tells everybody. Requires: a group may begin.
  void RunGroup() ABSL_UNLOCK_FUNCTION(mutex_);
  // Waits for the group that takes `sequence`, which another thread runs.
  void AwaitGroup(SequenceNumber sequence) ABSL_UNLOCK_FUNCTION(mutex_);
  void WakeGroup(uint32_t group);
  // Waits for company, for group_max_delay at most.
  void GatherLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does what is due each second.
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
  SequenceNumber wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // a thread waits for it, whatever its mode
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
