// Job threads help threads that have more work than one processor does in time: a thread cuts its
// work into the jobs of a JobGroup, and does those that no job thread has begun by itself. So work
// goes on at the pace of one thread where all job threads are busy, and no job waits for another.
//
// A job thread starts when a job is offered and no other job thread is free. It yields to threads
// of the foreground (util/os/thread_setup.h), as those that offer jobs do.
//
// Thread-safety: all functions of JobThreads may be called by any thread; a group belongs to the
// thread that made it.
// Invariants: each job runs once at most; none runs once its group is gone.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class JobThreads {
 public:
  // Starts at most `most` threads, or as many as the system gives.
  explicit JobThreads(size_t most) : most_(most) {}
  // Requires: no group is left.
  ~JobThreads();
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  size_t most() const { return most_; }

 private:
  friend class JobGroup;
  enum class Stage { kWaiting, kRunning, kDone };
  struct Job {
    std::function<void()> work;
    Stage stage = Stage::kWaiting;  // guarded by mutex_
  };

  void Work() ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts the jobs in front of those that wait, or behind them.
  void Offer(std::vector<Job>* jobs, bool is_urgent) ABSL_LOCKS_EXCLUDED(mutex_);
  void StartThreadsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the job away from the job threads. Returns false if one has begun it.
  bool Withdraw(Job* job) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitFor(Job* job) ABSL_LOCKS_EXCLUDED(mutex_);

  const size_t most_;
  absl::Mutex mutex_;
  absl::CondVar work_;
  absl::CondVar done_;
  std::vector<Job*> waiting_ ABSL_GUARDED_BY(mutex_);  // first comes first
  size_t free_ ABSL_GUARDED_BY(mutex_) = 0;            // threads without a job
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

// The jobs that one thread has cut its work into.
class JobGroup {
 public:
  // Offers all jobs but the first one, which the caller does by itself. `threads` may be null: then
  // it does all of them. Urgent jobs come before others. Jobs do not throw.
  JobGroup(JobThreads* threads, std::vector<std::function<void()>> jobs, bool is_urgent);
  // Drops jobs that nobody has begun, and waits for the others.
  ~JobGroup();
  JobGroup(const JobGroup&) = delete;
  JobGroup& operator=(const JobGroup&) = delete;

  // Does the job unless a job thread has begun it, and returns once it is done.
  void Finish(size_t job);
  // Finishes all jobs: first those that nobody has begun.
  void FinishAll();

 private:
  // Does the job if nobody has begun it.
  void TryToDo(JobThreads::Job* job);

  JobThreads* const threads_;
  std::vector<JobThreads::Job> jobs_;
};

}  // namespace varve
