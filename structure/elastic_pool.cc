#include "structure/elastic_pool.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/time/time.h"
#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {

ElasticPool::ElasticPool(std::string name, size_t most_threads, size_t queue_capacity)
    : name_(std::move(name)), most_threads_(most_threads), queue_capacity_(queue_capacity) {
  VARVE_ASSERT(most_threads_ > 0);
}

ElasticPool::~ElasticPool() { Stop(); }

bool ElasticPool::TrySubmit(Task&& task) {
  Workers ended;  // joined without the lock
  bool taken = true;
  {
    absl::MutexLock lock(&mutex_);
    ended.swap(ended_);
    if (stopped_) {
      taken = false;
    } else if (!idle_.empty()) {
      Worker* const worker = idle_.back();
      idle_.pop_back();
      worker->task = std::move(task);
      worker->given.Signal();
    } else if (workers_.size() >= most_threads_ || !Start(&task)) {
      taken = !workers_.empty() && queue_.size() < queue_capacity_;
      if (taken) queue_.push_back(std::move(task));
    }
  }
  for (Worker& worker : ended) worker.thread.join();
  return taken;
}

bool ElasticPool::Start(Task* task) {
  const auto worker = workers_.emplace(workers_.end());
  worker->task = std::move(*task);
  try {
    worker->thread = std::thread([this, worker] {
      NameThread(name_);
      Work(worker);
    });
    return true;
    // The standard library's way to say that there are no more.
  } catch (const std::system_error&) {
    *task = std::move(worker->task);
    workers_.erase(worker);
    return false;
  }
}

void ElasticPool::Work(Workers::iterator self) {
  absl::MutexLock lock(&mutex_);
  while (self->task != nullptr || AwaitTask(&*self)) {
    Task task = std::exchange(self->task, nullptr);
    mutex_.Unlock();
    task();
    task = nullptr;  // what it holds goes before the thread rests
    mutex_.Lock();
  }
  ended_.splice(ended_.end(), workers_, self);
}

bool ElasticPool::AwaitTask(Worker* worker) {
  if (!queue_.empty()) {
    worker->task = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }
  if (stopped_) return false;
  idle_.push_back(worker);
  const absl::Time until = absl::Now() + absl::FromChrono(kIdle);
  while (worker->task == nullptr && !stopped_) {
    if (!worker->given.WaitWithDeadline(&mutex_, until) || worker->task != nullptr) continue;
    break;
  }
  if (worker->task != nullptr) return true;
  std::erase(idle_, worker);
  return false;
}

size_t ElasticPool::threads() const {
  absl::MutexLock lock(&mutex_);
  return workers_.size();
}

size_t ElasticPool::idle() const {
  absl::MutexLock lock(&mutex_);
  return idle_.size();
}

size_t ElasticPool::waiting() const {
  absl::MutexLock lock(&mutex_);
  return queue_.size();
}

void ElasticPool::Stop() {
  Workers ended;
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    for (Worker* const worker : idle_) worker->given.Signal();
    const auto all_ended = [this]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return workers_.empty(); };
    mutex_.Await(absl::Condition(&all_ended));
    ended.swap(ended_);
  }
  for (Worker& worker : ended) worker.thread.join();
}

}  // namespace varve
