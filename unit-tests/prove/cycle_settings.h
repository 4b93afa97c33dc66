// The settings of one cycle: modes take turns, the rest is drawn. Buffers are mostly small, so that
// flushes and merges are always under way. Pure functions of their arguments.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace varve::prove {

inline std::string ModeOf(uint64_t cycle) {
  static const char* const kModes[] = {"always", "everysec", "no"};
  return kModes[cycle % 3];
}

inline std::vector<std::string> SettingsOf(uint64_t cycle, std::mt19937_64* random) {
  static const char* const kExecutions[] = {"adaptive", "pool", "inline"};
  static const char* const kBuffers[] = {"64KiB", "256KiB", "1MiB", "16MiB"};
  return {"--sync=" + ModeOf(cycle), std::string("--execution=") + kExecutions[(*random)() % 3],
          std::string("--write-buffer-size=") + kBuffers[(*random)() % 4]};
}

// Requests that each connection sends ahead.
inline size_t RandomDepth(std::mt19937_64* random) {
  static const size_t kDepths[] = {1, 4, 16, 64};
  return kDepths[(*random)() % 4];
}

}  // namespace varve::prove
