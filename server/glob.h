// Patterns of CONFIG GET: * any run of characters, ? any one, [a-z] [^a] one of a set, \c the character c. Case-insensitive.
// Pure function; the pattern is matched in time proportional to its length times the text's.
#pragma once

#include <cstddef>
#include <string_view>

namespace varve {

// What a client may ask for: keeps that time within bounds.
inline constexpr size_t kMaxGlobPattern = 1024;

bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace varve
