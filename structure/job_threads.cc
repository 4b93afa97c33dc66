#include "structure/job_threads.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {

// --- Threads -------------------------------------------------------------------------------------

JobThreads::~JobThreads() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(waiting_.empty());
    stopping_ = true;
    work_.SignalAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void JobThreads::Work() {
  YieldToForeground();
  absl::MutexLock lock(&mutex_);
  for (;;) {
    while (waiting_.empty() && !stopping_) work_.Wait(&mutex_);
    if (waiting_.empty()) return;
    Job* const job = waiting_.front();
    waiting_.erase(waiting_.begin());
    VARVE_ASSERT(job->stage == Stage::kWaiting && free_ > 0);
    job->stage = Stage::kRunning;
    --free_;
    mutex_.Unlock();
    job->work();
    mutex_.Lock();
    job->stage = Stage::kDone;  // the group may be gone from now on
    ++free_;
    done_.SignalAll();
  }
}

void JobThreads::StartThreadsLocked() {
  while (threads_.size() < most_ && free_ < waiting_.size()) {
    try {
      threads_.emplace_back([this, name = fmt::format("varve-job-{}", threads_.size())] {
        NameThread(name);
        Work();
      });
    } catch (const std::exception&) {
      return;  // the system gives no more, and what is offered is done by who offers it
    }
    ++free_;
  }
}

void JobThreads::Offer(std::vector<Job>* jobs, bool is_urgent) {
  absl::MutexLock lock(&mutex_);
  waiting_.reserve(waiting_.size() + jobs->size());
  auto place = is_urgent ? waiting_.begin() : waiting_.end();
  for (size_t i = 1; i < jobs->size(); ++i) place = waiting_.insert(place, &(*jobs)[i]) + 1;
  StartThreadsLocked();
  work_.SignalAll();
}

bool JobThreads::Withdraw(Job* job) {
  absl::MutexLock lock(&mutex_);
  if (job->stage != Stage::kWaiting) return false;
  std::erase(waiting_, job);
  job->stage = Stage::kDone;
  return true;
}

void JobThreads::WaitFor(Job* job) {
  absl::MutexLock lock(&mutex_);
  while (job->stage != Stage::kDone) done_.Wait(&mutex_);
}

// --- Groups --------------------------------------------------------------------------------------

JobGroup::JobGroup(JobThreads* threads, std::vector<std::function<void()>> jobs, bool is_urgent)
    : threads_(threads), jobs_(jobs.size()) {
  for (size_t i = 0; i < jobs.size(); ++i) jobs_[i].work = std::move(jobs[i]);
  if (threads_ != nullptr && threads_->most() > 0 && jobs_.size() > 1)
    threads_->Offer(&jobs_, is_urgent);
}

JobGroup::~JobGroup() {
  if (threads_ == nullptr) return;
  for (JobThreads::Job& job : jobs_) {
    if (!threads_->Withdraw(&job)) threads_->WaitFor(&job);
  }
}

void JobGroup::TryToDo(JobThreads::Job* job) {
  if (threads_ != nullptr) {
    if (threads_->Withdraw(job)) job->work();
  } else if (job->stage == JobThreads::Stage::kWaiting) {
    job->stage = JobThreads::Stage::kDone;
    job->work();
  }
}

void JobGroup::Finish(size_t job) {
  VARVE_ASSERT(job < jobs_.size());
  TryToDo(&jobs_[job]);
  if (threads_ != nullptr) threads_->WaitFor(&jobs_[job]);
}

void JobGroup::FinishAll() {
  for (JobThreads::Job& job : jobs_) TryToDo(&job);
  for (size_t i = 0; i < jobs_.size(); ++i) Finish(i);
}

}  // namespace varve
