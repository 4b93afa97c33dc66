// The thread pool is a fixed number of threads that run tasks from one ConcurrentQueue in order of
// arrival.
//
// Thread-safety: all functions may be called by any thread, but Stop by no task of the pool.
// Invariants: every task that TrySubmit() took runs exactly once, also when the pool stops; at most
// `queue_capacity` tasks wait.
#pragma once

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "structure/concurrent_queue.h"

namespace varve {

class ThreadPool {
 public:
  using Task = absl::AnyInvocable<void()>;

  // Starts `threads` threads (at least one), named after `name` (at most 12 bytes are shown by the
  // system). Where the system gives fewer, threads() says how many; a pool without any takes tasks
  // and never runs them.
  ThreadPool(std::string name, size_t threads, size_t queue_capacity);
  // Stops as Stop() does.
  ~ThreadPool();

  size_t threads() const { return threads_.size(); }

  // Hands over a task; false when the queue is full or the pool is stopped: the caller keeps its
  // work and slows down. A task small enough for AnyInvocable's own storage (two pointers) costs no
  // allocation.
  [[nodiscard]] bool TrySubmit(Task&& task) { return queue_.TryPush(std::move(task)); }

  // Takes no more tasks, runs those taken, and joins the threads.
  // Requires: no task of the pool is the caller.
  void Stop();

 private:
  void Work();

  ConcurrentQueue<Task> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace varve
