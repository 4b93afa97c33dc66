#include "util/base/glob.h"

#include <algorithm>

namespace varve {
namespace {

char Folded(char c, GlobCase letters) {
  return letters == GlobCase::kInsensitive && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20)
                                                                   : c;
}

// Matches `c` against the set that begins behind the bracket at `*position` and moves behind it. A
// set without its closing bracket ends with the pattern. Bytes compare as Redis compares them, as
// signed numbers.
bool MatchSet(std::string_view pattern, size_t* position, char c, GlobCase letters) {
  size_t p = *position;
  const bool negated = p < pattern.size() && pattern[p] == '^';
  if (negated) ++p;
  bool matched = false;
  for (; p < pattern.size() && pattern[p] != ']'; ++p) {
    if (pattern[p] == '\\' && p + 1 < pattern.size()) {
      ++p;
      matched = matched || pattern[p] == c;
    } else if (p + 2 < pattern.size() && pattern[p + 1] == '-') {
      const auto [low, high] =
          std::minmax({static_cast<signed char>(Folded(pattern[p], letters)),
                       static_cast<signed char>(Folded(pattern[p + 2], letters))});
      const auto folded = static_cast<signed char>(Folded(c, letters));
      matched = matched || (low <= folded && folded <= high);
      p += 2;
    } else {
      matched = matched || Folded(pattern[p], letters) == Folded(c, letters);
    }
  }
  *position = std::min(p + 1, pattern.size());
  return matched != negated;
}

// Matches one byte against the element of `pattern` at `*position` (not a star) and moves behind
// the element.
bool MatchOne(std::string_view pattern, size_t* position, char c, GlobCase letters) {
  const char element = pattern[(*position)++];
  if (element == '[') return MatchSet(pattern, position, c, letters);
  if (element == '?') return true;
  if (element != '\\' || *position == pattern.size())
    return Folded(element, letters) == Folded(c, letters);
  return Folded(pattern[(*position)++], letters) == Folded(c, letters);
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view text, GlobCase letters) {
  size_t p = 0;
  size_t t = 0;
  // Where to go on when a match after the last star fails: the star takes one character more.
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  for (size_t steps = 0; t < text.size() || p < pattern.size();) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
      if (star == pattern.size()) return true;
      continue;
    }
    size_t next = p;
    const bool matched =
        p < pattern.size() && t < text.size() && MatchOne(pattern, &next, text[t], letters);
    steps += next - p + 1;  // a set has many
    if (steps > kMaxGlobSteps + pattern.size() + text.size()) return false;
    if (matched) {
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

std::string GlobPrefix(std::string_view pattern) {
  std::string prefix;
  for (size_t p = 0; p < pattern.size(); ++p) {
    if (pattern[p] == '*' || pattern[p] == '?' || pattern[p] == '[') break;
    if (pattern[p] == '\\' && p + 1 < pattern.size()) ++p;
    prefix.push_back(pattern[p]);
  }
  return prefix;
}

}  // namespace varve
