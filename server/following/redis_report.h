// The report of a link to a Redis, which its thread writes and others read.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/following/redis_primary.h"

namespace varve {

class RedisReport {
 public:
  RedisLinkStatus Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return status_;
  }
  // Calls `change` with the status, under the lock.
  template <typename Change>
  void Update(Change change) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    change(status_);
  }

 private:
  mutable absl::Mutex mutex_;
  RedisLinkStatus status_ ABSL_GUARDED_BY(mutex_);  // without what was skipped
};

}  // namespace varve
