#include "server/glob.h"

namespace varve {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// Matches one character against the element of `pattern` at `*position` (not a star) and moves behind the element.
bool MatchOne(std::string_view pattern, size_t* position, char c) {
  size_t p = *position;
  bool matched = false;
  if (pattern[p] == '[') {
    ++p;
    const bool negated = p < pattern.size() && pattern[p] == '^';
    if (negated) ++p;
    while (p < pattern.size() && pattern[p] != ']') {
      char low = Lower(pattern[p]);
      char high = low;
      if (p + 2 < pattern.size() && pattern[p + 1] == '-' && pattern[p + 2] != ']') {
        high = Lower(pattern[p + 2]);
        p += 2;
      }
      matched = matched || (low <= Lower(c) && Lower(c) <= high);
      ++p;
    }
    if (p < pattern.size()) ++p;
    matched = matched != negated;
  } else if (pattern[p] == '?') {
    ++p;
    matched = true;
  } else {
    if (pattern[p] == '\\' && p + 1 < pattern.size()) ++p;
    matched = Lower(pattern[p++]) == Lower(c);
  }
  *position = p;
  return matched;
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  // Where to go on when a match after the last star fails: the star takes one character more.
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size() || p < pattern.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
      continue;
    }
    size_t next = p;
    if (p < pattern.size() && t < text.size() && MatchOne(pattern, &next, text[t])) {
      p = next;
      ++t;
      continue;
    }
    if (star == std::string_view::npos || star_text >= text.size()) return false;
    t = ++star_text;
    p = star;
  }
  return true;
}

}  // namespace varve
