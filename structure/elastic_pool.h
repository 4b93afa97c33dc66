// The elastic pool runs tasks that sleep for long, such as calls that wait for other machines. It
// has as many threads as tasks, up to a limit: a task that finds no idle thread starts one, and a
// thread that has had no task for kIdle ends. The thread that came to rest last gets the next task,
// so that the others can end. Tasks beyond the limit wait in order of arrival.
//
// Thread-safety: all functions may be called by any thread, but Stop by no task of the pool.
// Invariants: every task that TrySubmit() took runs exactly once, also when the pool stops; at most
// `queue_capacity` tasks wait, and none waits while a thread is idle.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class ElasticPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  static constexpr std::chrono::seconds kIdle{10};

  // Starts no thread yet. The threads are named after `name` (at most 15 bytes are shown by the
  // system). Requires: most_threads > 0.
  ElasticPool(std::string name, size_t most_threads, size_t queue_capacity);
  // Stops as Stop() does.
  ~ElasticPool();
  ElasticPool(const ElasticPool&) = delete;
  ElasticPool& operator=(const ElasticPool&) = delete;

  // Hands over a task; false when too many wait, when the pool is stopped, or when the system gives
  // not a single thread: the caller keeps its work.
  [[nodiscard]] bool TrySubmit(Task&& task) ABSL_LOCKS_EXCLUDED(mutex_);

  // Threads that there are now, those of them that rest, and tasks that wait for one.
  size_t threads() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t idle() const ABSL_LOCKS_EXCLUDED(mutex_);
  size_t waiting() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes no more tasks, runs those taken, and joins the threads.
  // Requires: no task of the pool is the caller.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Worker {
    std::thread thread;
    Task task;  // given to it; empty: none
    absl::CondVar given;
  };
  using Workers = std::list<Worker>;

  // Returns whether a thread was started for the task, which it moves from.
  bool Start(Task* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work(Workers::iterator self) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts the next task of `worker` in its place. False: the worker is to end.
  bool AwaitTask(Worker* worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const size_t most_threads_;
  const size_t queue_capacity_;
  mutable absl::Mutex mutex_;
  Workers workers_ ABSL_GUARDED_BY(mutex_);
  Workers ended_ ABSL_GUARDED_BY(mutex_);              // their threads are to be joined
  std::vector<Worker*> idle_ ABSL_GUARDED_BY(mutex_);  // the last one came to rest last
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve
