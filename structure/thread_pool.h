// The thread pool is a fixed number of threads that run tasks from one ConcurrentQueue in order of
// arrival.
//
// Thread-safety: all functions may be called by any thread, but Stop by no task of the pool.
// Invariants: every task that TrySubmit() took runs exactly once, also when the pool stops; at most
// `queue_capacity` tasks wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "structure/concurrent_queue.h"
#include "util/os/disk_wait.h"

namespace varve {

class ThreadPool {
 public:
  using Task = absl::AnyInvocable<void()>;
  using Time = std::chrono::steady_clock::time_point;

  // Starts `threads` threads (at least one), named after `name` (at most 12 bytes are shown by the
  // system). Where the system gives fewer, threads() says how many; a pool without any takes tasks
  // and never runs them.
  ThreadPool(std::string name, size_t threads, size_t queue_capacity);
  // Stops as Stop() does.
  ~ThreadPool();

  size_t threads() const { return workers_.size(); }

  // Hands over a task; false when the queue is full or the pool is stopped: the caller keeps its
  // work and slows down. A task small enough for AnyInvocable's own storage (two pointers) costs no
  // allocation.
  [[nodiscard]] bool TrySubmit(Task&& task) { return queue_.TryPush(std::move(task)); }

  // Returns for how long each thread has had no task or waited for the disk, altogether. `now` is
  // of the coarse clock (util/os/disk_wait.h), as are the times of the threads.
  std::vector<int64_t> IdleNanos(Time now) const;

  // Takes no more tasks, runs those taken, and joins the threads.
  // Requires: no task of the pool is the caller.
  void Stop();

 private:
  struct Worker {
    // Only the worker's thread writes what the mutex guards, where it falls asleep and wakes up.
    mutable absl::Mutex mutex;
    std::chrono::nanoseconds rested ABSL_GUARDED_BY(mutex){0};  // in the rests that have ended
    Time resting_since ABSL_GUARDED_BY(mutex){};                // Time(): it works
    DiskWaits disk;
    std::thread thread;

    void RestBegins(Time now) ABSL_LOCKS_EXCLUDED(mutex);
    void RestEnds(Time now) ABSL_LOCKS_EXCLUDED(mutex);
    int64_t IdleNanos(Time now) const ABSL_LOCKS_EXCLUDED(mutex);
  };

  void Work(Worker* worker);

  ConcurrentQueue<Task> queue_;
  std::deque<Worker> workers_;
};

}  // namespace varve
