// A condition variable for absl::Mutex whose time-outs are measured by the steady clock.
// absl::CondVar measures them by the wall clock: when that is set back by a month while somebody
// waits for a second, the second takes a month.
//
// It is used like absl::CondVar: the mutex is held around every wait, waits may end for no reason,
// and what is waited for is changed under the mutex; Signal may come with or without it. A signal
// costs an addition and a load where nobody waits.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace varve {

using SteadyTime = std::chrono::steady_clock::time_point;
inline constexpr SteadyTime kEndOfTime = SteadyTime::max();

inline SteadyTime SteadyNow() { return std::chrono::steady_clock::now(); }
inline SteadyTime operator+(SteadyTime time, absl::Duration span) {
  return time + absl::ToChronoNanoseconds(span);
}

class SteadyCondition {
 public:
  SteadyCondition() = default;
  SteadyCondition(const SteadyCondition&) = delete;
  SteadyCondition& operator=(const SteadyCondition&) = delete;

  void Wait(absl::Mutex* mutex) ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    WaitWithDeadline(mutex, kEndOfTime);
  }
  // Returns true if the time is over.
  bool WaitWithTimeout(absl::Mutex* mutex, absl::Duration timeout)
      ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return WaitWithDeadline(mutex, SteadyNow() + timeout);
  }
  bool WaitWithDeadline(absl::Mutex* mutex, SteadyTime deadline) ABSL_SHARED_LOCKS_REQUIRED(mutex);

  void Signal() { Wake(1); }
  void SignalAll();

 private:
  void Wake(int how_many);

  std::atomic<uint32_t> signals_{0};
  std::atomic<uint32_t> waiting_{0};
};

}  // namespace varve
