// A record as it moves from one server to another, with all that belongs to its value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace varve {

struct MovedRecord {
  std::string key;
  std::string value;
  uint64_t expiry_ms = 0;  // since the epoch; 0: never
  std::string metadata;

  size_t bytes() const { return key.size() + value.size() + metadata.size(); }
  bool operator==(const MovedRecord&) const = default;
};

}  // namespace varve
