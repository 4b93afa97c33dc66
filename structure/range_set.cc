#include "structure/range_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "util/base/assert.h"

namespace varve {

void RangeSet::Add(std::string_view begin, std::string_view end) {
  if (!end.empty() && end <= begin) return;
  std::string from(begin), to(end);
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->second.empty() || before->second >= from) next = before;
  }
  while (next != ranges_.end() && (to.empty() || next->first <= to)) {
    from = std::min(from, next->first);
    if (!to.empty() && (next->second.empty() || next->second > to)) to = next->second;
    VARVE_ASSERT(bytes_ >= next->first.size() + next->second.size() + kBytesPerRange);
    bytes_ -= next->first.size() + next->second.size() + kBytesPerRange;
    next = ranges_.erase(next);
  }
  bytes_ += from.size() + to.size() + kBytesPerRange;
  const bool is_new = ranges_.emplace(std::move(from), std::move(to)).second;
  VARVE_ASSERT(is_new);
  (void)is_new;
}

void RangeSet::JoinNeighbours() {
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const auto next = std::next(range);
    if (next == ranges_.end()) return;
    VARVE_ASSERT(!range->second.empty() && range->second < next->first);
    VARVE_ASSERT(bytes_ >= range->second.size() + next->first.size() + kBytesPerRange);
    bytes_ -= range->second.size() + next->first.size() + kBytesPerRange;
    range->second = std::move(next->second);
    ranges_.erase(next);
  }
}

void RangeSet::Clear() {
  ranges_.clear();
  bytes_ = 0;
}

std::optional<RangeSet::Range> RangeSet::Find(std::string_view key) const {
  const auto behind = ranges_.upper_bound(key);
  if (behind == ranges_.begin()) return std::nullopt;
  const auto& [begin, end] = *std::prev(behind);
  if (!end.empty() && key >= end) return std::nullopt;
  return Range{begin, end};
}

}  // namespace varve
