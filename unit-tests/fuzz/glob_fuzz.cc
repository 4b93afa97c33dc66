// Patterns: the matcher agrees with a plain one that tries everything, and what it says every match
// begins with is true.
//
//   input = [ flags: 1; bit 0: case does not matter, bit 1: try the pattern many times over, too ][
//   pattern, as a piece ][ text ]
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/fuzz/fuzz_target.h"
#include "util/base/glob.h"

namespace varve::fuzz {
namespace {

constexpr size_t kLongestPattern = 48;
constexpr size_t kLongestText = 64;

// Element by element from behind: matches_[t] says whether what follows in the pattern matches the
// text from t on.
class PlainMatcher {
 public:
  PlainMatcher(std::string_view text, bool fold) : text_(text), fold_(fold) {}

  bool Matches(std::string_view pattern) {
    std::vector<bool> tail(text_.size() + 1, false);
    tail[text_.size()] = true;
    const std::vector<std::string_view> elements = Elements(pattern);
    for (auto element = elements.rbegin(); element != elements.rend(); ++element) {
      std::vector<bool> here(text_.size() + 1, false);
      for (size_t t = text_.size() + 1; t-- > 0;) {
        if (*element == "*") {
          here[t] = tail[t] || (t < text_.size() && here[t + 1]);
        } else {
          here[t] = t < text_.size() && tail[t + 1] && One(*element, text_[t]);
        }
      }
      tail = here;
    }
    return tail[0];
  }

 private:
  // "*", "?", "\c", a set with its brackets, or one byte.
  static std::vector<std::string_view> Elements(std::string_view pattern) {
    std::vector<std::string_view> elements;
    for (size_t at = 0; at < pattern.size();) {
      size_t end = at + 1;
      if (pattern[at] == '\\' && end < pattern.size()) ++end;
      if (pattern[at] == '[') {
        if (end < pattern.size() && pattern[end] == '^') ++end;
        while (end < pattern.size() && pattern[end] != ']') end += ItemSize(pattern.substr(end));
        end = std::min(end + 1, pattern.size());
      }
      elements.push_back(pattern.substr(at, end - at));
      at = end;
    }
    return elements;
  }

  // Bytes of the first item of a set: "\c", "a-z" or one byte.
  static size_t ItemSize(std::string_view items) {
    if (items[0] == '\\' && items.size() > 1) return 2;
    return items.size() > 2 && items[1] == '-' ? 3 : 1;
  }

  signed char Fold(char c) const {
    return static_cast<signed char>(fold_ && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }

  bool One(std::string_view element, char c) const {
    if (element == "?") return true;
    if (element[0] == '\\' && element.size() == 2) return Fold(element[1]) == Fold(c);
    if (element[0] != '[') return Fold(element[0]) == Fold(c);
    std::string_view items = element.substr(1);
    const bool negated = items.starts_with('^');
    if (negated) items.remove_prefix(1);
    bool matched = false;
    while (!items.empty() && items[0] != ']') {
      const size_t size = ItemSize(items);
      if (size == 2) {
        matched = matched || items[1] == c;
      } else if (size == 3) {
        const auto [low, high] = std::minmax({Fold(items[0]), Fold(items[2])});
        matched = matched || (low <= Fold(c) && Fold(c) <= high);
      } else {
        matched = matched || Fold(items[0]) == Fold(c);
      }
      items.remove_prefix(size);
    }
    return matched != negated;
  }

  const std::string_view text_;
  const bool fold_;
};

void Run(std::string_view bytes) {
  Input input(bytes);
  const uint8_t flags = input.Byte();
  const bool fold = (flags & 1) != 0;
  const ExactCopy pattern(input.Piece().substr(0, kLongestPattern));
  const ExactCopy text(input.Rest().substr(0, kLongestText));
  const GlobCase letters = fold ? GlobCase::kInsensitive : GlobCase::kSensitive;
  const bool matches = GlobMatches(pattern.view(), text.view(), letters);
  VARVE_FUZZ_REQUIRE(matches == PlainMatcher(text.view(), fold).Matches(pattern.view()));
  const std::string prefix = GlobPrefix(pattern.view());
  if (matches && !fold) VARVE_FUZZ_REQUIRE(text.view().starts_with(prefix));
  if ((flags & 2) == 0) return;
  // What takes longest takes kMaxGlobSteps; the fuzzer's own time limit sees to it.
  std::string many;
  while (!pattern.view().empty() && many.size() < kMaxGlobPattern) many += pattern.view();
  (void)GlobMatches(many, std::string(1 << 10, 'a') + std::string(text.view()), letters);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"*", "anything"},
      {"user:?:*", "user:1:name"},
      {"[a-c]x[^d-f]", "bxz"},
      {"\\*\\[", "*["},
      {"h[^e", "hello"},
      {"[z-a]*", "m"},
      {"a*b*c*d", "aXbXcXbXcXd"},
      {"[]", ""},
      {"[\\]]", "]"},
      {"a\\", "a\\"},
      {"*a*a*a*a*a*b", "aaaaaaaaa"},
      {"[a-]", "-"},
      {"[^\x80-\xff]", "\xc3"},
      {"KEY[A-Z]", "keyq"},
      {"", ""},
      {"[[-]]", "\\]"},
  };
  for (const auto& [pattern, text] : pairs) {
    for (const char flags : {'\0', '\1', '\2'}) {
      std::string seed(1, flags);
      AppendPiece(pattern, &seed);
      seeds.push_back(seed + text);
    }
  }
  return seeds;
}

const Announced kTarget({"glob", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
