// The pool of the thread varve-upkeep, which executes commands that wait for background work
// (COMPACT). The first such command starts the thread, so that a server at rest does without it.
//
// Thread-safety: all functions may be called on any thread; one thread calls Stop().
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "structure/thread_pool.h"

namespace varve {

class UpkeepPool {
 public:
  UpkeepPool() = default;
  UpkeepPool(const UpkeepPool&) = delete;
  UpkeepPool& operator=(const UpkeepPool&) = delete;

  // Hands over a task. Returns false if too many wait already, if the pool is stopped, or if the
  // system gives no thread.
  [[nodiscard]] bool TrySubmit(ThreadPool::Task&& task) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return false;
    if (pool_ == nullptr || pool_->threads() == 0)
      pool_ = std::make_unique<ThreadPool>("varve-upkeep", 1, kMaxWaiting);
    return pool_->threads() > 0 && pool_->TrySubmit(std::move(task));
  }

  // Takes no more tasks, runs those taken, and joins the thread. Requires: not called by a task.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::unique_ptr<ThreadPool> pool;
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
      pool = std::move(pool_);
    }
    if (pool != nullptr) pool->Stop();
  }

 private:
  static constexpr size_t kMaxWaiting = 256;

  absl::Mutex mutex_;
  std::unique_ptr<ThreadPool> pool_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve
