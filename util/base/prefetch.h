// Functions that ask the processor to fetch memory that will be read soon.
//
// Thread-safety: All threads may call them.
#pragma once

#include <cstddef>

namespace varve {

// The line of the processor's cache in which `address` lies is on its way when this returns. Any
// address will do.
//
// With the bare builtin gcc takes a function that does nothing else for one without effects, and
// leaves calls of it out.
inline void PrefetchLine(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

// The lines from `begin` to `end`, in bytes behind `address`.
inline void PrefetchLines(const char* address, size_t begin, size_t end) {
  for (size_t at = begin; at < end; at += 64) PrefetchLine(address + at);
}

// As PrefetchLine, for memory that another processor has changed and this one is about to change.
inline void PrefetchLineForWrite(const void* address) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
  asm volatile("");
#endif
}

}  // namespace varve
