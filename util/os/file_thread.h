// The file thread of a store does slow work ahead of time or afterwards, while nobody waits for
// it: its jobs prepare log files, make memory for write buffers and remove files that are out of
// use. They share one thread because none of them needs a processor for long; each does a step at
// a time, so that no job holds up another one.
//
// Invariants: (1) At most one step runs at any time. (2) No step of a job begins after Remove(job)
// has returned.
// Thread-safety: all functions may be called from any thread. Steps run without the file thread's
// lock; they may call Wake().
#pragma once

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/steady_condition.h"

namespace varve {

class FileThread {
 public:
  class Job {
   public:
    virtual ~Job() = default;
    // Does one step, and returns when the next one is due. kEndOfTime: not before Wake(). A lack of
    // memory is the job's own to handle.
    virtual SteadyTime Step() noexcept = 0;
  };

  FileThread() = default;
  // Requires: every job has been removed.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // Makes `job` known; its first step is due when it is woken. Throws std::bad_alloc.
  // Requires: the job is removed before it ends.
  void Add(Job* job) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the job's next step due now. The first call starts the thread; where there is no memory
  // for one, a later call tries again.
  void Wake(Job* job) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets the job. Waits for a step of it that is running.
  // Requires: the caller holds no lock that a step of the job takes.
  void Remove(Job* job) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    Job* job;
    SteadyTime due;
  };

  void Run();
  // Returns the entry of the job, or null.
  Entry* Find(const Job* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the entry that is due first, or null if there is no job.
  Entry* Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  SteadyCondition changed_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  Job* running_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the job whose step is under way
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
