// A thread pace keeps a background thread that has much work and no hurry from taking the
// processors from threads that somebody waits for. With it, beside endless merges at half load,
// GETs have a p99 of 24 ms instead of 275 (docs/decisions/0022).
//
// A nice value alone shares a processor out in slices of milliseconds, and a thread that answers
// requests waits for the end of such a slice. So the background thread works in the time that the
// others leave (YieldToEveryone), until its work is urgent. If they leave it less than a tenth of a
// processor, it takes its share for a while, so that it still comes to an end: some twentieth of a
// processor in all. Where processors are idle, it works on.
//
// A thread that yields and loses its processor may wait for the next one for seconds, on a loaded
// machine for a minute. It must not do that with a lock that others wait for, be it one of this
// program or of the kernel's file system. So it takes its share before (TakeShare).
//
// Where the kernel would not let the thread come back from SCHED_IDLE, the thread looks how long it
// had to wait for a processor itself (/proc/thread-self/schedstat, the kernel's own count). If that
// was noticeable, it rests twice as long as it has worked: two thirds of a processor are free then.
// On a kernel that does not count, the thread neither yields nor rests.
//
// Thread-safety: a pace belongs to the thread that made it, which has called YieldToForeground()
// and is as that left it once the pace is gone. SwitchOff() may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>

#include "util/os/steady_condition.h"

namespace varve {

class ThreadPace {
 public:
  // A thread of kYieldsOrRests rests only where the kernel does not let it yield; one of kRests
  // never yields, so that a test sees the rests on any kernel.
  enum class Manner { kYieldsOrRests, kRests };
  explicit ThreadPace(Manner manner = Manner::kYieldsOrRests)
      : may_yield_(manner == Manner::kYieldsOrRests) {}
  ~ThreadPace();
  ThreadPace(const ThreadPace&) = delete;
  ThreadPace& operator=(const ThreadPace&) = delete;

  // Keeps every thread of the process from yielding and resting: for programs that decide
  // themselves which thread runs when.
  static void SwitchOff();

  // Yields or rests if that is due. The working thread calls it every millisecond or so; most calls
  // read the clock and return. `is_urgent`: the thread works on.
  void Rest(bool is_urgent);
  // Takes its share of the processors until the next look of Rest(). The working thread calls it
  // before it takes what others wait for.
  void TakeShare();

  // Returns the sum of all rests.
  std::chrono::nanoseconds rested() const { return rested_; }

 private:
  // Works in the time that the others leave from now on. Returns false if it may not.
  bool Yield();
  // Returns how long this thread has waited for a processor so far, in nanoseconds. Where the
  // kernel does not tell, returns the figure of the last look and ends the yielding.
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
