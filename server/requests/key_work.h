// The unit in which long work is counted: what it costs to look at one key.
#pragma once

#include <cstddef>

namespace varve {

// The number of bytes that are read or copied in about the time that looking at one key takes.
inline constexpr size_t kBytesPerKey = 512;

}  // namespace varve
