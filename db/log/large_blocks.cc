#include "db/log/large_blocks.h"

#include <algorithm>
#include <iterator>

#include "db/format/log_format.h"
#include "util/base/assert.h"

namespace varve {

bool LargeBlocks::Add(SequenceNumber first) {
  VARVE_ASSERT(blocks_.empty() || blocks_.back().first <= first);
  if (!blocks_.empty() && blocks_.back().first == first) return false;
  blocks_.push_back({first, 0, 0});
  return true;
}

void LargeBlocks::SetPlaces(const std::vector<LogBuffer::Block>& blocks, size_t begin, size_t end,
                            uint64_t file_number, uint64_t position) {
  VARVE_ASSERT(begin < end && end <= blocks.size());
  if (blocks_.empty()) return;
  auto place = blocks_.end();  // what is written now was appended last
  while (place != blocks_.begin() && std::prev(place)->first >= blocks[begin].first) --place;
  for (size_t i = begin; i < end && place != blocks_.end(); ++i) {
    if (place->first != blocks[i].first) continue;  // it has no large operations
    VARVE_ASSERT(place->file_number == 0);
    place->file_number = file_number;
    place->payload_offset =
        position + (blocks[i].begin - blocks[begin].begin) + kLogBlockHeaderSize;
    ++place;
  }
}

std::vector<LogBlockPlace> LargeBlocks::Find(SequenceNumber first, SequenceNumber last) const {
  VARVE_ASSERT(first <= last);
  const auto is_before = [](SequenceNumber sequence, const LogBlockPlace& block) {
    return sequence < block.first;
  };
  auto begin = std::upper_bound(blocks_.begin(), blocks_.end(), first, is_before);
  if (begin != blocks_.begin()) --begin;
  const auto end = std::upper_bound(begin, blocks_.end(), last, is_before);
  return {begin, end};
}

void LargeBlocks::Forget(SequenceNumber flushed) {
  while (blocks_.size() > 1 && blocks_[1].first <= flushed + 1) blocks_.pop_front();
}

}  // namespace varve
