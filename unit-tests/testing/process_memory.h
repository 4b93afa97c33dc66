// How much memory this process, or another, takes, for tests of what is bounded.
#pragma once

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

}  // namespace varve::testing
