#include "server/tracking/tracked_prefixes.h"

#include <algorithm>
#include <iterator>

#include "util/base/assert.h"

namespace varve {
namespace {

size_t CommonBytes(std::string_view one, std::string_view other) {
  const size_t size = std::min(one.size(), other.size());
  return static_cast<size_t>(
      std::mismatch(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(size), other.begin())
          .first -
      one.begin());
}

}  // namespace

void TrackedPrefixes::Add(std::string_view prefix, uint64_t client) {
  auto found = prefixes_.find(prefix);
  if (found == prefixes_.end()) found = prefixes_.emplace(std::string(prefix), ClientIds()).first;
  found->second.insert(client);
}

void TrackedPrefixes::Remove(std::string_view prefix, uint64_t client) {
  const auto found = prefixes_.find(prefix);
  if (found == prefixes_.end()) return;
  found->second.erase(client);
  if (found->second.empty()) prefixes_.erase(found);
}

void TrackedPrefixes::ForEachOfKey(std::string_view key, Visit visit) const {
  // The last prefix that is not behind what is left of the key is one of the key, or a prefix of
  // the key is no longer than what the two have in common.
  std::string_view left = key;
  for (;;) {
    auto place = prefixes_.upper_bound(left);
    if (place == prefixes_.begin()) return;
    place = std::prev(place);
    const std::string& prefix = place->first;
    if (!left.starts_with(prefix)) {
      left = left.substr(0, CommonBytes(left, prefix));
      continue;
    }
    VARVE_ASSERT(!place->second.empty());
    visit(prefix, place->second);
    if (prefix.empty()) return;
    left = left.substr(0, prefix.size() - 1);
  }
}

void TrackedPrefixes::ForEachOfRange(std::string_view begin, std::string_view end,
                                     Visit visit) const {
  for (const auto& [prefix, clients] : prefixes_) {
    if (!end.empty() && prefix >= end) return;
    if (prefix >= begin || begin.starts_with(prefix)) visit(prefix, clients);
  }
}

}  // namespace varve
