// SegmentReader: what lookups of several keys do ahead for each of them.
#include "db/segment_reader.h"
#include "db/segment_values.h"

namespace varve {

bool SegmentReader::Peek(uint64_t hash, PeekedRecord* peeked) const {
  *peeked = {};
  OffsetTableCandidates candidates;
  if (!range_tombstone_status_.ok() || !ProbeResident(hash, &candidates)) return true;
  if (candidates.empty()) return false;
  const SegmentFooter* const footer = footer_.load(std::memory_order_acquire);
  if (footer == nullptr) return true;
  peeked->entry = candidates.front();
  peeked->is_only = candidates.size() == 1;
  const uint64_t offset = peeked->entry.offset;
  if (IsValueAddress(info_, offset)) {
    const AddressedValue at = ValueAt(offset);
    if (at.file_index >= value_files_.size()) return true;
    peeked->file_number = value_files_[at.file_index]->number();
    peeked->cache_key = RecordKey(at.offset);
  } else {
    peeked->file_number = info_.number;
    peeked->cache_key = BlockKey(offset, footer->block_size);
  }
  caches_->blocks.PrefetchSlot(peeked->file_number, peeked->cache_key);
  return true;
}

bool SegmentReader::PrefetchRecord(const PeekedRecord& peeked, bool fill_cache) const {
  const OffsetTableEntry& entry = peeked.entry;
  if (entry.length_class == 0) return false;
  const bool is_value = IsValueAddress(info_, entry.offset);
  if (caches_->blocks.PrefetchEntry(peeked.file_number, peeked.cache_key, is_value ? 0 : entry.offset)) return false;
  if (entry.length_class == kUnboundedLengthClass) return false;
  const uint64_t extent = LengthClassLimit(entry.length_class);
  if (is_value) {
    const AddressedValue at = ValueAt(entry.offset);
    value_files_[at.file_index]->Prefetch(at.offset, extent);
    return true;
  }
  const bool worth_a_block = fill_cache && extent <= kMaxRecordCachedByBlock;
  if (!worth_a_block && caches_->blocks.PrefetchEntry(info_.number, RecordKey(entry.offset), 0)) return false;
  const BlockSpan span = worth_a_block ? CacheableBlockOf(entry.offset) : BlockSpan{};
  span.end == 0 ? file_->Prefetch(entry.offset, extent) : file_->Prefetch(span.begin, span.end - span.begin);
  return true;
}

}  // namespace varve
