// The turn mutex is a mutex of which a thread that works for long, slice by slice, can make sure
// that others come between its slices. absl::Mutex does not promise that: a thread that gives it
// back for a moment mostly has it again before another thread, which has to be woken first and to
// wait for a processor, comes to take it.
//
// Threads that are to come in between take the mutex by a TurnLock; LetOthersIn() lets in those
// that asked for it before. Those that ask later have their turn the next time, so that the long
// work goes on, too.
//
// Thread-safety: as absl::Mutex.
// Invariants: had_ <= asked_, and both count the threads in a TurnLock.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class ABSL_LOCKABLE TurnMutex : public absl::Mutex {
 public:
  // Gives the mutex away until each thread has had it that waits in a TurnLock now.
  // Requires: the caller holds no other lock that such a thread takes.
  void LetOthersIn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    Turns turns{this, asked_.load()};
    Await(absl::Condition(&HadTheirTurns, &turns));
  }
  // Returns whether a thread waits in a TurnLock.
  bool OthersWait() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(this) {
    return had_.load() != asked_.load();
  }

 private:
  friend class TurnLock;
  struct Turns {
    const TurnMutex* mutex;
    uint64_t asked;
  };
  static bool HadTheirTurns(Turns* turns) { return turns->mutex->had_.load() >= turns->asked; }

  std::atomic<uint64_t> asked_{0};
  std::atomic<uint64_t> had_{0};  // is changed by the thread that has the mutex
};

class ABSL_SCOPED_LOCKABLE TurnLock {
 public:
  explicit TurnLock(TurnMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(*mutex) {
    mutex_.asked_.fetch_add(1);
    mutex_.Lock();
    mutex_.had_.fetch_add(1);
  }
  ~TurnLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

 private:
  TurnMutex& mutex_;
};

}  // namespace varve
