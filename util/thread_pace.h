// Keeps a thread that has much work and no hurry from taking the processors from those who are waited for.
//
// A nice value alone shares a processor out in turns of milliseconds, and whoever answers requests waits for such a turn. So the thread
// looks how long it had to wait for a processor itself, and where that was noticeable it rests twice as long as it has worked: two
// thirds of a processor are free then. Where processors are idle it never rests.
// The waiting time is the kernel's own (/proc/thread-self/schedstat); without that file there are no rests.
// One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>

#include "util/steady_condition.h"

namespace varve {

class ThreadPace {
 public:
  ThreadPace() = default;
  ~ThreadPace();
  ThreadPace(const ThreadPace&) = delete;
  ThreadPace& operator=(const ThreadPace&) = delete;

  // No thread of the process rests any more: for programs that decide themselves which thread runs when.
  static void SwitchOff();

  // To be called by the working thread every millisecond or so; most calls read the clock and return. `hurries`: works on.
  void Rest(bool hurries);

  // All rests together.
  std::chrono::nanoseconds rested() const { return rested_; }

 private:
  // How long this thread has waited for a processor so far, in nanoseconds; no longer than at the last look where that isn't known.
  uint64_t Waited();

  int file_ = -1;
  bool opened_ = false;
  SteadyTime begun_{};   // the step
  uint64_t waited_ = 0;  // when it began
  std::chrono::nanoseconds rested_{0};
};

}  // namespace varve
