// Asking memory for what will be read soon.
#pragma once

namespace varve {

// The line of the processor's cache in which `address` lies is on its way when this returns. Any address will do.
//
// With the bare builtin gcc takes a function that does nothing else for one without effects, and leaves calls of it out.
inline void PrefetchLine(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace varve
