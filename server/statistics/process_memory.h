// The memory of this process, as the system counts it.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <cstdint>

namespace varve {

// Bytes; 0 where the system doesn't tell.
struct ProcessMemory {
  uint64_t resident = 0;
  uint64_t peak = 0;  // of what was resident
};
ProcessMemory ReadProcessMemory();

}  // namespace varve
