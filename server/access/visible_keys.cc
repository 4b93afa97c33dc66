#include "server/access/visible_keys.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"
#include "util/base/glob.h"

namespace varve {
namespace {

KeyRange RangeOfKey(std::string_view key) {
  KeyRange range;
  range.lower.assign(key);
  range.upper.assign(key);
  range.upper.push_back('\0');
  return range;
}

// Returns whether `upper`, the end of a range, lies before `key`.
bool EndsBefore(const std::string& upper, const std::string& key) {
  return !upper.empty() && upper < key;
}

// Returns the end of the one that goes further.
const std::string& Further(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty()) return one.empty() ? one : other;
  return std::max(one, other);
}

const std::string& Nearer(const std::string& one, const std::string& other) {
  if (one.empty() || other.empty()) return one.empty() ? other : one;
  return std::min(one, other);
}

// Adds the keys that the selector allows to read.
void AddReadable(const Selector& selector, VisibleKeys* visible) {
  if (AllowsEveryKey(selector, kMayRead)) visible->all = true;
  for (const KeyPattern& pattern : selector.keys) {
    if ((pattern.rights & kMayRead) == 0) continue;
    visible->patterns.push_back(pattern.pattern);
    visible->ranges.push_back(
        RangeOfPattern(pattern.pattern).value_or(PrefixRange(GlobPrefix(pattern.pattern))));
  }
}

}  // namespace

std::optional<KeyRange> RangeOfPattern(std::string_view pattern) {
  std::string literal;
  for (size_t i = 0; i < pattern.size(); ++i) {
    switch (pattern[i]) {
      case '*':
        if (pattern.find_first_not_of('*', i) != std::string_view::npos) return std::nullopt;
        return PrefixRange(literal);
      case '?':
      case '[':
        return std::nullopt;
      case '\\':
        if (i + 1 < pattern.size()) ++i;
        break;
      default:
        break;
    }
    literal.push_back(pattern[i]);
  }
  return RangeOfKey(literal);
}

std::vector<KeyRange> JoinRanges(std::vector<KeyRange> ranges) {
  std::erase_if(ranges, [](const KeyRange& range) { return range.empty; });
  std::sort(ranges.begin(), ranges.end(),
            [](const KeyRange& a, const KeyRange& b) { return a.lower < b.lower; });
  std::vector<KeyRange> joined;
  for (KeyRange& range : ranges) {
    if (joined.empty() || EndsBefore(joined.back().upper, range.lower)) {
      joined.push_back(std::move(range));
    } else {
      joined.back().upper = std::string(Further(joined.back().upper, range.upper));
    }
  }
  return joined;
}

std::vector<KeyRange> CutRanges(const KeyRange& range, absl::Span<const KeyRange> ranges) {
  std::vector<KeyRange> cut;
  if (range.empty) return cut;
  for (const KeyRange& each : ranges) {
    KeyRange part;
    part.lower = std::max(range.lower, each.lower);
    part.upper = Nearer(range.upper, each.upper);
    if (part.upper.empty() || part.lower < part.upper) cut.push_back(std::move(part));
  }
  return cut;
}

bool ReadsWholeRanges(const Selector& selector) {
  if (AllowsEveryKey(selector, kMayRead)) return true;
  return std::all_of(selector.keys.begin(), selector.keys.end(), [](const KeyPattern& pattern) {
    return (pattern.rights & kMayRead) == 0 || RangeOfPattern(pattern.pattern).has_value();
  });
}

bool AllowsRange(const Selector& selector, const KeyRange& range, KeyRights rights) {
  if (range.empty || AllowsEveryKey(selector, rights)) return true;
  std::vector<KeyRange> allowed;
  for (const KeyPattern& pattern : selector.keys) {
    const std::optional<KeyRange> keys = RangeOfPattern(pattern.pattern);
    if ((pattern.rights & rights) == rights && keys) allowed.push_back(*keys);
  }
  allowed = JoinRanges(std::move(allowed));
  return std::any_of(allowed.begin(), allowed.end(), [&](const KeyRange& part) {
    const bool ends_within =
        part.upper.empty() || (!range.upper.empty() && range.upper <= part.upper);
    return part.lower <= range.lower && ends_within;
  });
}

VisibleKeys FindVisibleKeys(const CommandCatalog& catalog, const User& user, const Command& command,
                            Arguments request, const Place& place) {
  VisibleKeys visible;
  const auto add = [&](const Selector& selector) {
    if (SelectorAllows(catalog, selector, command, request, place)) AddReadable(selector, &visible);
  };
  add(user.root);
  for (const Selector& selector : user.selectors) add(selector);
  const bool filtered =
      !std::all_of(visible.patterns.begin(), visible.patterns.end(),
                   [](const std::string& pattern) { return RangeOfPattern(pattern).has_value(); });
  if (visible.all || !filtered) visible.patterns.clear();
  visible.ranges = JoinRanges(std::move(visible.ranges));
  VARVE_ASSERT(
      std::is_sorted(visible.ranges.begin(), visible.ranges.end(),
                     [](const KeyRange& a, const KeyRange& b) { return a.lower < b.lower; }));
  return visible;
}

}  // namespace varve
