// A past point says as of when a request reads: at a version, at an instant, or so long ago. It
// stands behind AT, in front of a command or at the end of its arguments.
//
//   version | TIME milliseconds-since-1970 | AGO seconds
//
// Thread-safety: plain values; the functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/requests/request_batch.h"

namespace varve {

struct PastPoint {
  enum class Kind : uint8_t { kVersion, kInstant, kAgo };

  Kind kind = Kind::kVersion;
  uint64_t number = 0;  // the version, or milliseconds
  size_t words = 0;     // that it takes
};

// Returns the version, or the number of milliseconds, that the text is; nothing if it is negative
// or is not an integer.
std::optional<uint64_t> ParseCount(std::string_view text);

// Reads the point that `words` begin with. Returns InvalidArgument, with the reply's words behind
// "ERR", if they begin with none.
absl::StatusOr<PastPoint> ParsePastPoint(Arguments words);

// Returns how many of the words name a namespace and, behind AT, a point of its past; `words` begin
// with the name. The point may make no sense.
size_t CountStateWords(Arguments words);

// Returns the number of arguments in front of the AT that ends the request; nothing if none ends
// it. The point behind AT may still make no sense.
std::optional<size_t> FindPastSuffix(Arguments arguments);

}  // namespace varve
