// SegmentReader: what lookups of several keys do ahead for each of them.
#include "db/segment_reader.h"
#include "db/segment_values.h"

namespace varve {

bool SegmentReader::Peek(uint64_t hash, PeekedRecord* peeked) const {
  *peeked = {};
  const SegmentFooter* const footer = footer_.load(std::memory_order_acquire);
  if (footer == nullptr || !range_tombstone_status_.ok()) return true;
  {
    const ResidentIndex::Pin pin(resident_);
    if (!pin) return true;
    switch (pin->table().LookupOnly(hash, &peeked->entry)) {
      case OffsetTableView::Only::kNone:
        return false;
      case OffsetTableView::Only::kOne:
        break;
      case OffsetTableView::Only::kSeveral:
        return true;
    }
  }
  peeked->is_only = true;
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

bool SegmentReader::PrefetchRecord(PeekedRecord* peeked, bool fill_cache) const {
  const OffsetTableEntry& entry = peeked->entry;
  if (entry.length_class == 0) return false;
  const bool is_value = IsValueAddress(info_, entry.offset);
  peeked->bytes = caches_->blocks.PrefetchEntry(peeked->file_number, peeked->cache_key, is_value ? 0 : entry.offset);
  if (peeked->bytes != nullptr) return false;
  if (entry.length_class == kUnboundedLengthClass) return false;
  const uint64_t extent = LengthClassLimit(entry.length_class);
  if (is_value) {
    const AddressedValue at = ValueAt(entry.offset);
    value_files_[at.file_index]->Prefetch(at.offset, extent);
    return true;
  }
  const bool worth_a_block = fill_cache && extent <= kMaxRecordCachedByBlock;
  if (!worth_a_block) peeked->bytes = caches_->blocks.PrefetchEntry(info_.number, RecordKey(entry.offset), 0);
  if (peeked->bytes != nullptr) return false;
  const BlockSpan span = worth_a_block ? CacheableBlockOf(entry.offset) : BlockSpan{};
  span.end == 0 ? file_->Prefetch(entry.offset, extent) : file_->Prefetch(span.begin, span.end - span.begin);
  return true;
}

}  // namespace varve
