#include "server/remote/slice_iterator.h"

#include <algorithm>
#include <utility>

namespace varve {

SliceIterator::SliceIterator(RangeSlice slice, bool is_descending) : slice_(std::move(slice)) {
  if (is_descending) std::reverse(slice_.entries.begin(), slice_.entries.end());
}

size_t SliceIterator::FirstFrom(std::string_view key) const {
  const auto found = std::lower_bound(
      slice_.entries.begin(), slice_.entries.end(), key,
      [](const RangeEntry& entry, std::string_view wanted) { return entry.key < wanted; });
  return static_cast<size_t>(found - slice_.entries.begin());
}

void SliceIterator::SeekForPrev(std::string_view key) {
  at_ = FirstFrom(key);
  if (!Valid() || slice_.entries[at_].key != key) --at_;
}

}  // namespace varve
