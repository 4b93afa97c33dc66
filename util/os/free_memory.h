// Gives the memory that the allocator keeps for later back to the system. After a burst of writes
// that is most of a small store's resident memory: buffers of merges and flushes leave holes that
// the allocator does not give back by itself.
//
// Thread-safety: any thread may call it. Threads that allocate meanwhile may wait for some
// milliseconds.
#pragma once

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace varve {

// Does nothing where the system's allocator has no such function.
inline void GiveBackFreeMemory() {
#if defined(__GLIBC__)
  ::malloc_trim(0);
#endif
}

}  // namespace varve
