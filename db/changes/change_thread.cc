#include "db/changes/change_thread.h"

#include <utility>

#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {

void ChangeThread::Start(std::function<void()> work) {
  if (thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = false;
  }
  thread_ = std::thread([this, work = std::move(work)] { Loop(work); });
}

void ChangeThread::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ChangeThread::Wake() {
  absl::MutexLock lock(&mutex_);
  woken_ = true;
  wake_.Signal();
}

void ChangeThread::Loop(const std::function<void()>& work) {
  NameThread("varve-changes");
  YieldToForeground();
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      while (!woken_ && !stopping_) wake_.Wait(&mutex_);
      if (stopping_) return;
      woken_ = false;
    }
    work();
    absl::MutexLock lock(&listeners_mutex_);
    for (const auto& [token, listener] : listeners_) listener();
  }
}

uint64_t ChangeThread::AddListener(std::function<void()> listener) {
  VARVE_ASSERT(listener != nullptr);
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.emplace(next_listener_, std::move(listener));
  has_listeners_.store(true);
  return next_listener_++;
}

void ChangeThread::RemoveListener(uint64_t token) {
  absl::MutexLock lock(&listeners_mutex_);
  listeners_.erase(token);
  has_listeners_.store(!listeners_.empty());
}

}  // namespace varve
