// Bounds of range commands, as Redis' lexical ranges write them: "-" and "+" are the ends, "[key"
// includes the key, "(key" not.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

// The keys in [lower, upper); an empty `upper` means no end. `empty`: no key at all.
struct KeyRange {
  std::string lower;
  std::string upper;
  bool empty = false;
};

// The most bytes of a delimiter that divides keys into paths.
inline constexpr size_t kLongestDelimiter = 16;

// The reply to bounds that make no range, in Redis' words.
inline constexpr std::string_view kBadBound = "ERR min or max not valid string range item";

// Returns nothing if a bound has none of the four forms.
std::optional<KeyRange> ParseKeyRange(std::string_view min, std::string_view max);

// Returns the range of all keys that begin with `prefix`.
KeyRange PrefixRange(std::string_view prefix);

}  // namespace varve
