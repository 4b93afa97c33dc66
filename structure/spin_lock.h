// The spin lock is a lock of one byte for critical sections of some tens of nanoseconds that hold
// no I/O, no allocation and no other lock.
//
// An uncontended Lock and Unlock cost one atomic exchange. A thread that finds the lock taken reads
// it until it is free, and gives the processor away now and then, so that a holder that lost its
// core can go on. The lock is neither recursive nor fair. For anything longer use absl::Mutex.
//
// Thread-safety: all functions may be called by any thread.
// Requires: the thread that locked it unlocks it.
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "util/base/assert.h"
#include "util/base/spin.h"

namespace varve {

class ABSL_LOCKABLE SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    while (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] Wait();
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    VARVE_ASSERT(taken_.load(std::memory_order_relaxed));
    taken_.store(false, std::memory_order_release);
  }

 private:
  void Wait() {
    for (SpinWait wait; taken_.load(std::memory_order_relaxed);) wait.Pause();
  }

  std::atomic<bool> taken_{false};
};

class ABSL_SCOPED_LOCKABLE SpinLockHolder {
 public:
  explicit SpinLockHolder(SpinLock* lock) ABSL_EXCLUSIVE_LOCK_FUNCTION(lock) : lock_(lock) {
    lock_->Lock();
  }
  ~SpinLockHolder() ABSL_UNLOCK_FUNCTION() { lock_->Unlock(); }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;

 private:
  SpinLock* const lock_;
};

}  // namespace varve
