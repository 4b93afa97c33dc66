// Names of the files in a store's directory. Logs and segments share one count of numbers, so that no name is used twice.
#pragma once

#include <cstdint>
#include <string>

#include "fmt/format.h"

namespace varve {

inline std::string SegmentPath(const std::string& directory, uint64_t number) {
  return fmt::format("{}/{:06}.seg", directory, number);
}

}  // namespace varve
