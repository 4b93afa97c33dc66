#include "util/base/nearest_text.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace varve {
namespace {

constexpr size_t kLongest = 64;  // no name is longer, and what is longer is no slip of the finger

size_t Changes(std::string_view from, std::string_view to) {
  // Changes from what was read of `from` to each beginning of `to`.
  std::vector<size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < to.size(); ++j) {
      const size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view NearestText(std::string_view text, std::span<const std::string_view> candidates) {
  if (text.size() > kLongest) return "";
  std::string_view nearest;
  size_t fewest = std::max<size_t>(2, text.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    // Each byte too many is one change.
    if (std::max(text.size(), candidate.size()) - std::min(text.size(), candidate.size()) >= fewest)
      continue;
    const size_t changes = Changes(text, candidate);
    if (changes < fewest && changes < candidate.size()) {
      fewest = changes;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace varve
