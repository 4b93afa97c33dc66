#include "server/statistics/process_memory.h"

#include <cstdio>
#include <string_view>

namespace varve {

ProcessMemory ReadProcessMemory() {
  ProcessMemory memory;
  std::FILE* const file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return memory;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    unsigned long long kibibytes = 0;
    if (std::sscanf(line, "VmRSS: %llu", &kibibytes) == 1) memory.resident = kibibytes * 1024;
    if (std::sscanf(line, "VmHWM: %llu", &kibibytes) == 1) memory.peak = kibibytes * 1024;
  }
  std::fclose(file);
  return memory;
}

}  // namespace varve
