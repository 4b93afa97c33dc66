// SegmentReader: lookups as far as they touch memory alone.
#include <utility>

#include "db/format/large_operation.h"
#include "db/segment/segment_reader.h"
#include "db/segment/segment_values.h"

namespace varve {

OffsetTableView::Only SegmentReader::LookupOnly(uint64_t hash, OffsetTableEntry* entry) const {
  const ResidentIndex::Pin pin(resident_);
  return pin ? pin->table().LookupOnly(hash, entry) : OffsetTableView::Only::kSeveral;
}

std::optional<bool> SegmentReader::FindInMemory(std::string_view tree_key, uint64_t hash,
                                                SequenceNumber at, FoundRecord* found) {
  const SegmentFooter* const footer = footer_.load(std::memory_order_acquire);
  if (footer == nullptr || !range_tombstone_status_.ok()) return std::nullopt;
  OffsetTableEntry entry;
  if (found->peeked != nullptr && found->peeked->is_only) {
    entry = found->peeked->entry;
  } else {
    const OffsetTableView::Only known = LookupOnly(hash, &entry);
    if (known == OffsetTableView::Only::kNone) return false;
    if (known == OffsetTableView::Only::kSeveral) return std::nullopt;
  }
  RecordView record;
  if (IsValueAddress(info_, entry.offset)) {
    const AddressedValue place = ValueAt(entry.offset);
    if (found->without_value || place.file_index >= value_files_.size()) return std::nullopt;
    ClockCache::Handle value =
        caches_->blocks.Lookup(info_.value_files[place.file_index].file_number,
                               RecordKey(place.offset), 0, LengthClassLimit(entry.length_class));
    if (!value || ParseLargeOperation(value.data(), &record) == 0) return std::nullopt;
    if (record.key != tree_key || record.sequence > at) return std::nullopt;
    caches_->statistics.block_cache_hits.Add(1);
    found->record = record;
    found->pin = std::move(value);
    return true;
  }
  ClockCache::Handle block =
      caches_->blocks.Lookup(info_.number, BlockKey(entry.offset, footer->block_size), entry.offset,
                             LengthClassLimit(entry.length_class));
  if (!block || block.flagged() || entry.offset - block.base() >= block.data().size())
    return std::nullopt;
  const std::string_view window = block.data().substr(entry.offset - block.base());
  if (DecodeRecord(window, info_.number, ChecksumMode::kTrusted, &record) == 0) return std::nullopt;
  if (record.key != tree_key || record.sequence > at || IsSeparated(record)) return std::nullopt;
  caches_->statistics.block_cache_hits.Add(1);
  found->record = record;
  found->pin = std::move(block);
  return true;
}

bool SegmentReader::Peek(uint64_t hash, PeekedRecord* peeked) const {
  *peeked = {};
  const SegmentFooter* const footer = footer_.load(std::memory_order_acquire);
  if (footer == nullptr || !range_tombstone_status_.ok()) return true;
  const OffsetTableView::Only known = LookupOnly(hash, &peeked->entry);
  if (known == OffsetTableView::Only::kNone) return false;
  if (known == OffsetTableView::Only::kSeveral) return true;
  peeked->is_only = true;
  const uint64_t offset = peeked->entry.offset;
  if (IsValueAddress(info_, offset)) {
    const AddressedValue at = ValueAt(offset);
    if (at.file_index >= value_files_.size()) return true;
    peeked->file_number = info_.value_files[at.file_index].file_number;
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
  peeked->bytes = caches_->blocks.PrefetchEntry(peeked->file_number, peeked->cache_key,
                                                is_value ? 0 : entry.offset);
  if (peeked->bytes != nullptr) return false;
  if (entry.length_class == kUnboundedLengthClass) return false;
  const uint64_t extent = LengthClassLimit(entry.length_class);
  if (is_value) {
    const AddressedValue at = ValueAt(entry.offset);
    value_files_[at.file_index]->Prefetch(at.offset, extent);
    return true;
  }
  const bool worth_a_block = fill_cache && extent <= kMaxRecordCachedByBlock;
  if (!worth_a_block)
    peeked->bytes = caches_->blocks.PrefetchEntry(info_.number, RecordKey(entry.offset), 0);
  if (peeked->bytes != nullptr) return false;
  const BlockSpan span = worth_a_block ? CacheableBlockOf(entry.offset) : BlockSpan{};
  span.end == 0 ? file_->Prefetch(entry.offset, extent)
                : file_->Prefetch(span.begin, span.end - span.begin);
  return true;
}

}  // namespace varve
