// Points in time as people write them on the command line and read them in tables: RFC 3339, such
// as 2026-11-25T19:33:00Z or 2026-11-25T20:33:00.250+01:00.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace varve {

// Returns the milliseconds since the epoch; what lies between two is of the first. InvalidArgument
// for text without a time of day or without an offset, which would be another instant in another
// place.
[[nodiscard]] absl::StatusOr<uint64_t> ParseTimeText(std::string_view text);

// In UTC; without a fraction where it would be zero.
std::string TimeText(uint64_t ms);

}  // namespace varve
