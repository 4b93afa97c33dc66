// The memory of this process, as the system counts it. Thread-safe.
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
