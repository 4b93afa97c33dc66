#include "util/os/file_thread.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/os/thread_setup.h"

namespace varve {

FileThread::~FileThread() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(entries_.empty());
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void FileThread::Add(Job* job) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(Find(job) == nullptr);
  VARVE_ASSERT(!stopping_);
  entries_.push_back({job, kEndOfTime});
}

void FileThread::Wake(Job* job) noexcept {
  TryWithMemory([this, job] {
    absl::MutexLock lock(&mutex_);
    Entry* const entry = Find(job);
    if (entry == nullptr) return;
    entry->due = std::min(entry->due, SteadyNow());
    changed_.SignalAll();
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  });
}

void FileThread::Remove(Job* job) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(entries_, [job](const Entry& entry) { return entry.job == job; });
  while (running_ == job) changed_.Wait(&mutex_);
  VARVE_ASSERT(Find(job) == nullptr);
}

FileThread::Entry* FileThread::Find(const Job* job) {
  mutex_.AssertHeld();
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [job](const Entry& entry) { return entry.job == job; });
  return found == entries_.end() ? nullptr : &*found;
}

FileThread::Entry* FileThread::Next() {
  mutex_.AssertHeld();
  const auto first = std::min_element(entries_.begin(), entries_.end(),
                                      [](const Entry& a, const Entry& b) { return a.due < b.due; });
  return first == entries_.end() ? nullptr : &*first;
}

void FileThread::Run() {
  NameThread("varve-files");
  absl::MutexLock lock(&mutex_);
  while (!stopping_) {
    Entry* const next = Next();
    const SteadyTime due = next == nullptr ? kEndOfTime : next->due;
    if (due > SteadyNow()) {
      changed_.WaitWithDeadline(&mutex_, due);
      continue;
    }
    VARVE_ASSERT(running_ == nullptr);
    Job* const job = running_ = next->job;
    next->due = kEndOfTime;
    mutex_.Unlock();
    const SteadyTime again = job->Step();
    mutex_.Lock();
    VARVE_ASSERT(running_ == job);
    running_ = nullptr;
    if (Entry* const entry = Find(job); entry != nullptr) entry->due = std::min(entry->due, again);
    changed_.SignalAll();
  }
}

}  // namespace varve
