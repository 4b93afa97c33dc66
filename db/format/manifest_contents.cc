#include "db/format/manifest_contents.h"

#include <algorithm>
#include <random>
#include <string>

namespace varve {

uint64_t NewHistoryId() {
  std::random_device device;
  return std::max<uint64_t>(1, (uint64_t{device()} << 32 | device()) >> 1);
}

bool MayHoldExpiries(const Manifest& manifest) {
  const std::string index = FirstTreeKey(kExpiryGeneration);
  const auto holds = [&](const std::vector<SegmentInfo>& run) {
    return !run.empty() && ReachesTo(run.back(), index);
  };
  return std::any_of(manifest.levels.begin(), manifest.levels.end(), [&](const auto& level) {
    return std::any_of(level.begin(), level.end(), holds);
  });
}

void ForgetCountsWithoutExpiry(Manifest* manifest) {
  if (!manifest->counts_expiry && MayHoldExpiries(*manifest)) {
    for (auto& level : manifest->levels) {
      for (auto& run : level) {
        for (SegmentInfo& segment : run) segment.expiry_is_counted = false;
      }
    }
    manifest->counted_groups.clear();
    manifest->parent_counts = GenerationKeyCounts();
  }
  manifest->counts_expiry = true;
}

}  // namespace varve
