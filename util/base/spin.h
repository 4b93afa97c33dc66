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

// Returns how often a thread looks, with a pause between two looks, before it sleeps: some
// microseconds, which is what sleeping and being woken takes. With one processor the other thread
// does not run meanwhile, so the first look is the last.
inline int SpinsBeforeSleep() {
  static const int spins = std::thread::hardware_concurrency() > 1 ? 256 : 1;
  return spins;
}

}  // namespace varve
