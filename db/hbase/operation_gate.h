// The operation gate counts the calls of a store that are under way, so that the store can end once
// the last of them has been answered.
//
// Thread-safety: All functions are thread-safe.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "util/os/steady_condition.h"

namespace varve {

class OperationGate {
 public:
  // Holds the gate open; a call keeps its copy until it was answered.
  using Pass = std::shared_ptr<const void>;

  // FailedPrecondition: the gate is closed.
  absl::StatusOr<Pass> Enter() {
    const absl::MutexLock lock(&mutex_);
    if (closed_) return absl::FailedPreconditionError("the store is closed");
    ++inside_;
    return Pass(this, [](const void* gate) {
      static_cast<OperationGate*>(const_cast<void*>(gate))->Leave();
    });
  }

  // Lets nobody in any more.
  void Close() {
    const absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  // Waits so long at most until everybody has left. Returns whether that is so.
  bool WaitUntilEmpty(absl::Duration how_long) {
    const absl::MutexLock lock(&mutex_);
    const SteadyTime end = SteadyNow() + how_long;
    while (inside_ > 0 && !emptied_.WaitWithDeadline(&mutex_, end)) {
    }
    return inside_ == 0;
  }

  bool IsClosed() const {
    const absl::MutexLock lock(&mutex_);
    return closed_;
  }

 private:
  void Leave() {
    const absl::MutexLock lock(&mutex_);
    if (--inside_ == 0) emptied_.SignalAll();
  }

  mutable absl::Mutex mutex_;
  SteadyCondition emptied_;
  size_t inside_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve
