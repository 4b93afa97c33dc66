#include "server/requests/key_range.h"

namespace varve {
namespace {

// The next key after `key` in byte order.
std::string After(std::string_view key) {
  std::string next(key);
  next.push_back('\0');
  return next;
}

}  // namespace

std::optional<KeyRange> ParseKeyRange(std::string_view min, std::string_view max) {
  KeyRange range;
  if (min == "+") {
    range.empty = true;
  } else if (!min.empty() && min[0] == '[') {
    range.lower.assign(min.substr(1));
  } else if (!min.empty() && min[0] == '(') {
    range.lower = After(min.substr(1));
  } else if (min != "-") {
    return std::nullopt;
  }
  if (max == "-") {
    range.empty = true;
  } else if (!max.empty() && max[0] == '[') {
    range.upper = After(max.substr(1));
  } else if (!max.empty() && max[0] == '(') {
    range.upper.assign(max.substr(1));
    if (range.upper.empty()) range.empty = true;  // nothing comes before the empty key
  } else if (max != "+") {
    return std::nullopt;
  }
  if (!range.upper.empty() && range.lower >= range.upper) range.empty = true;
  return range;
}

KeyRange PrefixRange(std::string_view prefix) {
  KeyRange range;
  range.lower.assign(prefix);
  range.upper.assign(prefix);
  while (!range.upper.empty() && range.upper.back() == '\xff') range.upper.pop_back();
  if (!range.upper.empty()) ++range.upper.back();  // the first key after all that begin so
  return range;
}

}  // namespace varve
