// Patterns of KEYS, SCAN and CONFIG GET, as Redis matches them: * any run of bytes, ? any one, [a-z] [^a] one of a set, \c the
// byte c. Pure functions.
//
// Of several stars only the last one reached is ever tried again, so a match takes time proportional to the pattern's length times
// the text's at worst; kMaxGlobSteps ends it before: what needs more does not match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

// What a client may ask for in CONFIG GET.
inline constexpr size_t kMaxGlobPattern = 1024;
// Elements of a pattern compared in one match: some milliseconds.
inline constexpr uint32_t kMaxGlobSteps = 1u << 20;

enum class GlobCase : uint8_t { kSensitive, kInsensitive };

bool GlobMatches(std::string_view pattern, std::string_view text, GlobCase letters = GlobCase::kSensitive);

// What every text that matches `pattern` begins with.
std::string GlobPrefix(std::string_view pattern);

}  // namespace varve
