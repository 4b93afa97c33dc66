// How much memory this process, or another, takes, for tests of what is bounded.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace varve::testing {

// Sanitizers keep memory of their own beside each byte, and give nothing back.
#if defined(VARVE_WATCHED_MEMORY)
inline constexpr bool kMemoryIsTold = false;
#else
inline constexpr bool kMemoryIsTold = true;
#endif

inline size_t ResidentBytes(const std::string& process = "self") {
  std::ifstream file("/proc/" + process + "/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

// Returns the bytes that this process has allocated and not freed.
inline size_t HeapBytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace varve::testing
