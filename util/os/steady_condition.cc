#include "util/os/steady_condition.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <limits>

namespace varve {

// A signal between unlocking and sleeping has changed signals_, and the kernel doesn't let us
// sleep. Who signals has changed something under the mutex, after we looked at it: so waiting_ is
// seen.
bool SteadyCondition::WaitWithDeadline(absl::Mutex* mutex,
                                       SteadyTime deadline) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  waiting_.fetch_add(1);
  const uint32_t before = signals_.load();
  timespec left{};
  bool over = false;
  if (deadline != kEndOfTime) {
    const auto nanos =
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - SteadyNow()).count();
    over = nanos <= 0;
    left = {static_cast<time_t>(nanos / 1'000'000'000), static_cast<long>(nanos % 1'000'000'000)};
  }
  mutex->Unlock();
  // A time-out that is a span is measured by CLOCK_MONOTONIC.
  if (!over)
    syscall(SYS_futex, &signals_, FUTEX_WAIT_PRIVATE, before,
            deadline == kEndOfTime ? nullptr : &left, nullptr, 0);
  mutex->Lock();
  waiting_.fetch_sub(1);
  return signals_.load() == before && deadline != kEndOfTime && SteadyNow() >= deadline;
}

void SteadyCondition::SignalAll() { Wake(std::numeric_limits<int>::max()); }

void SteadyCondition::Wake(int how_many) {
  signals_.fetch_add(1);
  if (waiting_.load() > 0)
    syscall(SYS_futex, &signals_, FUTEX_WAKE_PRIVATE, how_many, nullptr, nullptr, 0);
}

}  // namespace varve
