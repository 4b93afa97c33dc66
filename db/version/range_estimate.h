// The range estimate says about how much of the segments a range of keys takes, from what is in
// memory: the sizes of the segments that lie in the range, and of those at its ends the part that
// their fences give. It is off by at most a block at each end in each run whose fences are in
// memory, and counts what later records have replaced until a merge removes it.
//
// Thread-safety: the function takes no lock and reads nothing from disk.
#pragma once

#include <cstdint>
#include <string_view>

#include "db/version/version.h"

namespace varve {

struct RangeEstimate {
  double bytes = 0;  // in segments, and in value files for them
  // The values of the range's first generation whose flushes and merges had to decide how they are
  // compressed, and what they take.
  double plain_bytes = 0;
  double stored_bytes = 0;
  double entries = 0;  // records, less two for each tombstone: it hides a record
};

// Estimates the tree keys of [lower, upper); an empty `upper` means no end.
RangeEstimate EstimateRange(const Version& version, std::string_view lower, std::string_view upper);

}  // namespace varve
