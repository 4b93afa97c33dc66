// The description of a database or namespace: what NAMESPACE INFO tells of it, as the words by
// which another server is given the same.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "type/reply.h"

namespace varve {

// Options that are set together, as NAMESPACE ALTER takes them.
struct SpaceOptions {
  // A move leaves out what only says how a store keeps its data. The other ones change what clients
  // see.
  enum class Kind : uint8_t { kStorage, kMeaning, kQuota };

  Kind kind = Kind::kMeaning;
  std::vector<std::string> words;  // name, value, name, value
};

struct SpaceDescription {
  std::string grouping;               // "together", a delimiter, or empty: none was declared
  uint64_t usual_expiry_ms = 0;       // of what is written without one; 0: never
  std::vector<SpaceOptions> options;  // those that are not as usual
};

// DataLoss: the reply makes no sense.
[[nodiscard]] absl::StatusOr<SpaceDescription> ParseSpaceInfo(const Reply& reply);

}  // namespace varve
