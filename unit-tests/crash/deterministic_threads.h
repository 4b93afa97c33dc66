// Threads that run one at a time, in an order that a seed decides, under a clock that only they
// move: the same seed gives the same run.
//
// While a DeterministicThreads lives, the thread that made it and all threads that it and they
// start belong to it. One of them has the turn; it gives it up where it waits (a lock that is held,
// a condition variable, an atomic's wait, a join), where it sleeps, and, when the dice say so, at
// MaySwitch(), which the simulated file system calls before each of its operations. When all of
// them wait, time leaps to the moment at which the first one would wake up; if there is none, the
// program ends and says so: a deadlock.
//
// How: the program's own definitions of syscall (futex), nanosleep, clock_gettime, gettimeofday,
// sched_yield, pthread_create and pthread_join stand before the C library's, and absl::Now before
// abseil's. Threads that do not belong to a simulation get the C library's. What is not seen: locks
// of the C library itself (pthread_mutex_t), which nobody may hold when he gives up the turn.
//
// Not under ThreadSanitizer, whose view of the threads it would spoil. One at a time in a process.
#pragma once

#include <cstdint>

namespace varve::testing {

class DeterministicThreads {
 public:
  // At MaySwitch() the turn passes on once in `calls_per_switch` times, on average.
  explicit DeterministicThreads(uint64_t seed, uint64_t calls_per_switch = 4);
  // All other threads must have been joined.
  ~DeterministicThreads();
  DeterministicThreads(const DeterministicThreads&) = delete;
  DeterministicThreads& operator=(const DeterministicThreads&) = delete;

  // A place at which another thread may go on. Does nothing on a thread that belongs to no
  // simulation.
  static void MaySwitch();
};

}  // namespace varve::testing
