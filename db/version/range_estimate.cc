#include "db/version/range_estimate.h"

#include <algorithm>
#include <string>

#include "util/base/assert.h"

namespace varve {
namespace {

// Returns which part of what the segment holds of a generation lies in a range that takes `share`
// of the segment.
double ShareOfGeneration(const Segment& segment, NamespaceGeneration generation, double share) {
  const std::string end = EndTreeKey(generation);
  const double whole =
      (end.empty() ? 1 : segment.ShareBefore(end)) - segment.ShareBefore(FirstTreeKey(generation));
  return whole <= share ? 1 : share / whole;
}

}  // namespace

RangeEstimate EstimateRange(const Version& version, std::string_view lower,
                            std::string_view upper) {
  VARVE_ASSERT(upper.empty() || lower <= upper);
  RangeEstimate sum;
  for (const Run* const run : version.runs()) {
    for (size_t i = run->IndexOf(lower); i < run->segments.size(); ++i) {
      const Segment& segment = *run->segments[i];
      const SegmentInfo& info = segment.info();
      if (!upper.empty() && info.smallest >= upper) break;
      const double end = upper.empty() ? 1 : segment.ShareBefore(upper);
      const double share = std::max(0.0, end - segment.ShareBefore(lower));
      VARVE_ASSERT(share <= 1);
      for (const CompressedBytes& each : info.compressed) {
        if (each.generation != GenerationOf(lower)) continue;
        const double part = ShareOfGeneration(segment, each.generation, share);
        sum.plain_bytes += part * static_cast<double>(each.plain_bytes);
        sum.stored_bytes += part * static_cast<double>(each.stored_bytes);
      }
      const uint64_t hidden = std::min(info.entries, 2 * info.tombstones);
      sum.bytes += share * static_cast<double>(info.file_size + info.referenced_bytes());
      sum.entries += share * static_cast<double>(info.entries - hidden);
    }
  }
  return sum;
}

}  // namespace varve
