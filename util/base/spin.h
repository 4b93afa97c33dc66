// Waiting in a loop for another thread that is about to be done.
#pragma once

#include <thread>

namespace varve {

// Tells the processor that the thread spins, which costs it less power and leaves more to a thread
// beside it on the same core.
inline void SpinPause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns how often a thread looks, with a pause between two looks, before it gives the processor
// away: some microseconds. With one processor the other thread does not run meanwhile, so the first
// look is the last.
inline int SpinsBeforeYield() {
  static const int spins = std::thread::hardware_concurrency() > 1 ? 256 : 1;
  return spins;
}

// Returns how often a thread gives the processor away, and looks on, before it sleeps. To sleep and
// be woken costs a thread tens of microseconds where a processor that idles has to be woken, too,
// and the thread that wakes it a few. With many processors there is one to spare for this.
inline int YieldsBeforeSleep() {
  static const int yields = std::thread::hardware_concurrency() >= 8 ? 16 : 2;
  return yields;
}

// Looks until `done()` returns true, for about as long as sleeping and being woken takes. Returns
// false where it is time to sleep.
template <typename Done>
bool SpinUntil(Done done) {
  for (int yields = 0;; ++yields) {
    for (int i = 0; i < SpinsBeforeYield(); ++i) {
      if (done()) return true;
      SpinPause();
    }
    if (yields == YieldsBeforeSleep()) return false;
    std::this_thread::yield();
  }
}

// Waits in a loop for a thread that is a few instructions from what is waited for. Gives the
// processor away from time to time, as that thread may have lost its own.
class SpinWait {
 public:
  void Pause() {
    if (++pauses_ % SpinsBeforeYield() != 0) {
      SpinPause();
    } else {
      std::this_thread::yield();
    }
  }

 private:
  int pauses_ = 0;
};

}  // namespace varve
