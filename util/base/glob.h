// Matching of texts against glob patterns, as Redis defines them for KEYS, SCAN, CONFIG GET and
// channel names: * stands for any run of bytes, ? for any one byte, [a-z] and [^a] for one byte of
// a set, and \c for the byte c.
//
// When a match fails after several stars, only the last star that was reached is tried again. A
// match therefore takes at worst a time proportional to the product of both lengths. It ends after
// kMaxGlobSteps; a text that needs more steps does not match.
//
// Thread-safety: the functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

// The longest pattern, in bytes, that CONFIG GET and PSUBSCRIBE accept.
inline constexpr size_t kMaxGlobPattern = 1024;
// The number of pattern elements that one match compares at most: some milliseconds of work.
inline constexpr uint32_t kMaxGlobSteps = 1u << 20;

// Returns an upper bound of what a match costs, in units of what it costs to look at one key.
inline size_t GlobCost(std::string_view pattern, std::string_view text) {
  constexpr size_t kStepsPerKey = 128;
  return 1 + pattern.size() * text.size() / kStepsPerKey;
}

enum class GlobCase : uint8_t { kSensitive, kInsensitive };

// Returns whether the whole of `text` matches `pattern`.
bool GlobMatches(std::string_view pattern, std::string_view text,
                 GlobCase letters = GlobCase::kSensitive);

// Returns the literal prefix that every text matching `pattern` begins with.
std::string GlobPrefix(std::string_view pattern);

}  // namespace varve
