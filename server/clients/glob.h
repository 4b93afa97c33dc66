// Patterns of KEYS, SCAN, CONFIG GET and of channels' names, as Redis matches them: * any run of
// bytes, ? any one, [a-z] [^a] one of a set, \c the byte c. Pure functions.
//
// Of several stars only the last one reached is ever tried again, so a match takes time
// proportional to the pattern's length times the text's at worst; kMaxGlobSteps ends it before:
// what needs more does not match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

// Bytes of a pattern of CONFIG GET, or of channels' names.
inline constexpr size_t kMaxGlobPattern = 1024;
// Elements of a pattern compared in one match: some milliseconds.
inline constexpr uint32_t kMaxGlobSteps = 1u << 20;

// The most that a match may cost, about: in units of what it costs to look at a key, as
// CommandContext::SliceSpent() counts.
inline size_t GlobCost(std::string_view pattern, std::string_view text) {
  constexpr size_t kStepsPerKey = 128;
  return 1 + pattern.size() * text.size() / kStepsPerKey;
}

enum class GlobCase : uint8_t { kSensitive, kInsensitive };

bool GlobMatches(std::string_view pattern, std::string_view text,
                 GlobCase letters = GlobCase::kSensitive);

// What every text that matches `pattern` begins with.
std::string GlobPrefix(std::string_view pattern);

}  // namespace varve
