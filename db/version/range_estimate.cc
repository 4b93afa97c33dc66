#include "db/version/range_estimate.h"

#include <algorithm>

#include "util/base/assert.h"

namespace varve {

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
        sum.plain_bytes += share * static_cast<double>(each.plain_bytes);
        sum.stored_bytes += share * static_cast<double>(each.stored_bytes);
      }
      const uint64_t hidden = std::min(info.entries, 2 * info.tombstones);
      sum.bytes += share * static_cast<double>(info.file_size + info.referenced_bytes());
      sum.entries += share * static_cast<double>(info.entries - hidden);
    }
  }
  return sum;
}

}  // namespace varve
