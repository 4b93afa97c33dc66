// Keeps a background thread that has much work and no hurry from taking the processors from those
// who are waited for.
//
// A nice value alone shares a processor out in turns of milliseconds, and whoever answers requests
// waits for such a turn. So the thread works in what time the others leave (YieldToEveryone), until
// it hurries. Where they leave it less than a tenth of a processor, it takes its share for a while,
// so that it still comes to an end: some twentieth of a processor in all. Where the kernel wouldn't
// let it come back from there, it looks how long it had to wait for a processor itself, and if that
// was noticeable it rests twice as long as it has worked: two thirds of a processor are free then.
// Where processors are idle it works on, either way. The waiting time is the kernel's own
// (/proc/thread-self/schedstat); where it isn't told the thread neither yields nor rests. One
// thread at a time: the one that made it, which has called YieldToForeground() and is as that left
// it afterwards.
#pragma once

#include <chrono>
#include <cstdint>

#include "util/os/steady_condition.h"

namespace varve {

class ThreadPace {
 public:
  enum class Manner { kYieldsOrRests, kRests };
  explicit ThreadPace(Manner manner = Manner::kYieldsOrRests)
      : may_yield_(manner == Manner::kYieldsOrRests) {}
  ~ThreadPace();
  ThreadPace(const ThreadPace&) = delete;
  ThreadPace& operator=(const ThreadPace&) = delete;

  // No thread of the process yields or rests any more: for programs that decide themselves which
  // thread runs when.
  static void SwitchOff();

  // To be called by the working thread every millisecond or so; most calls read the clock and
  // return. `hurries`: works on.
  void Rest(bool hurries);

  // All rests together.
  std::chrono::nanoseconds rested() const { return rested_; }

 private:
  // Works in what time the others leave; false: may not.
  bool Yield();
  void TakeShare();

  // How long this thread has waited for a processor so far, in nanoseconds; as at the last look,
  // and no more yielding, where that isn't told.
  uint64_t Waited();

  bool may_yield_;
  bool yields_ = false;
  int file_ = -1;
  bool opened_ = false;
  std::chrono::nanoseconds step_{0};  // until it looks again, at least
  SteadyTime begun_{};                // the step
  uint64_t waited_ = 0;               // when it began
  std::chrono::nanoseconds rested_{0};
};

}  // namespace varve
