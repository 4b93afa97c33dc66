// Whether an I/O thread with nothing to do asks its sockets for a while before it sleeps (busy
// polling; spin-then-park, Karlin et al. 1991). To be woken takes longer than a client nearby needs
// for its next request: 35 µs here, where a processor that idles has to be started
// (docs/decisions/0052).
//
// It pays while what comes next comes within kLimit. Where it doesn't, or where another thread
// wants the processor, only every kProbeEvery-th sleep tries again: what that costs at most is
// kLimit in as many sleeps. For one thread.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace varve {

class BusyPoll {
 public:
  static constexpr std::chrono::microseconds kLimit{50};
  static constexpr uint32_t kProbeEvery = 32;
  static constexpr int kMostCredit = 8;  // after many polls that paid; misses use it up
  static constexpr int kCreditPerFind = 1, kCostOfMiss = 2;

  // `processors`: with one alone, whoever is waited for could not run meanwhile.
  explicit BusyPoll(unsigned processors = std::thread::hardware_concurrency())
      : may_poll_(processors > 1) {}

  // To be asked before each sleep.
  bool IsWorthIt() {
    if (!may_poll_) return false;
    if (credit_ > 0) return true;
    return ++sleeps_ % kProbeEvery == 0;
  }

  // Calls `look` until it finds something, true, or kLimit is over.
  template <typename Look>
  bool Poll(Look&& look) {
    const long pushed_off = TimesPushedOff();
    const auto end = std::chrono::steady_clock::now() + kLimit;
    bool found = false;
    do {
      found = look();
    } while (!found && std::chrono::steady_clock::now() < end);
    Polled(found && TimesPushedOff() == pushed_off);
    return found;
  }

  void Polled(bool paid) {
    credit_ = std::clamp(credit_ + (paid ? kCreditPerFind : -kCostOfMiss), 0, kMostCredit);
  }

 private:
  // How often another thread took the processor while this one would have gone on.
  static long TimesPushedOff() {
    rusage use;
    return getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_nivcsw : 0;
  }

  const bool may_poll_;
  int credit_ = 0;
  uint32_t sleeps_ = 0;
};

}  // namespace varve
