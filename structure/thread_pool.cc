#include "structure/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {

ThreadPool::ThreadPool(std::string name, size_t threads, size_t queue_capacity)
    : queue_(queue_capacity) {
  threads = std::max<size_t>(threads, 1);
  for (size_t i = 0; i < threads; ++i) {
    Worker* const worker = &workers_.emplace_back();
    try {
      worker->thread = std::thread([this, worker, thread_name = fmt::format("{:.12}-{}", name, i)] {
        NameThread(thread_name);
        Work(worker);
      });
      // The standard library's way to say that there are no more.
    } catch (const std::system_error&) {
      workers_.pop_back();
      break;
    }
  }
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Stop() {
  queue_.Close();
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

std::vector<int64_t> ThreadPool::IdleNanos(Time now) const {
  std::vector<int64_t> idle;
  idle.reserve(workers_.size());
  for (const Worker& worker : workers_) idle.push_back(worker.IdleNanos(now));
  return idle;
}

void ThreadPool::Work(Worker* worker) {
  DiskWaits::NoteIn(&worker->disk);
  while (true) {
    // A thread that finds a task at once looks at no clock.
    std::optional<Task> task = queue_.TryPop();
    if (!task) {
      worker->RestBegins(CoarseNow());
      task = queue_.Pop();
      worker->RestEnds(CoarseNow());
    }
    if (!task) break;
    (*task)();
  }
  DiskWaits::NoteIn(nullptr);
}

void ThreadPool::Worker::RestBegins(Time now) {
  absl::MutexLock lock(&mutex);
  VARVE_ASSERT(resting_since == Time());
  resting_since = now;
}

void ThreadPool::Worker::RestEnds(Time now) {
  absl::MutexLock lock(&mutex);
  VARVE_ASSERT(resting_since != Time());
  rested += now - resting_since;
  resting_since = Time();
}

int64_t ThreadPool::Worker::IdleNanos(Time now) const {
  absl::MutexLock lock(&mutex);
  std::chrono::nanoseconds idle = rested;
  if (resting_since != Time() && now > resting_since) idle += now - resting_since;
  return idle.count() + disk.TotalNanos(now);
}

}  // namespace varve
