// The bounds of ranges of keys, as RANGE takes them.
//
// Thread-safety: The functions are pure.
#pragma once

#include <string>
#include <string_view>

namespace varve {

struct KeyBounds {
  std::string min = "-";
  std::string max = "+";
};

// Returns the bounds of the keys that begin with the prefix.
KeyBounds BoundsOfPrefix(std::string_view prefix);

// Returns the bound of all keys behind that one.
inline std::string BehindKey(std::string_view key) { return "(" + std::string(key); }

}  // namespace varve
