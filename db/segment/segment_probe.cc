#include "db/segment/segment_probe.h"

#include <algorithm>
#include <utility>

#include "db/compression/value_codec.h"
#include "db/format/key_base.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "db/segment/segment.h"
#include "db/segment/segment_blocks.h"
#include "db/segment/segment_format.h"
#include "db/segment/segment_iterator.h"
#include "db/segment/segment_values.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "varve/options.h"

namespace varve {

bool SegmentProbe::Begin(Segment* segment, uint64_t hash) {
  *this = {};
  segment->caches().statistics.lookups.Add(1);
  segment_ = segment;
  hash_ = hash;
  OffsetTableEntry entry;
  switch (segment->LookInTable(hash, &entry)) {
    case OffsetTableView::Only::kNone:
      segment_ = nullptr;
      return false;
    case OffsetTableView::Only::kSeveral:
      return true;
    case OffsetTableView::Only::kOne:
      is_only_ = true;
      Locate(entry);
      return true;
  }
  return true;
}

void SegmentProbe::Locate(const OffsetTableEntry& entry) {
  VARVE_ASSERT(entry.length_class != 0);
  const SegmentInfo& info = segment_->info();
  entry_ = entry;
  is_value_ = IsValueAddress(info, entry.offset);
  if (is_value_) {
    const AddressedValue at = ValueAt(entry.offset);
    VARVE_ASSERT(at.file_index < info.value_files.size());
    file_number_ = info.value_files[at.file_index].file_number;
    cache_key_ = RecordKey(at.offset);
  } else {
    file_number_ = info.number;
    cache_key_ = BlockKey(entry.offset, segment_->loaded_footer()->block_size);
  }
}

bool SegmentProbe::IsInKernel() const { return is_value_ && segment_->caches().kernel_caches_gets; }

bool SegmentProbe::IsWorthABlock(bool fill_cache) const {
  return fill_cache && !segment_->caches().kernel_caches_gets &&
         LengthClassLimit(entry_.length_class) <= kMaxRecordCachedByBlock;
}

void SegmentProbe::PrefetchSlot() const {
  if (is_only_ && !IsInKernel()) segment_->caches().blocks.PrefetchSlot(file_number_, cache_key_);
}

bool SegmentProbe::PrefetchRecord(bool fill_cache) {
  VARVE_ASSERT(has_begun());
  if (!is_only_) return false;
  const ClockCache& blocks = segment_->caches().blocks;
  if (!IsInKernel())
    bytes_ = blocks.PrefetchEntry(file_number_, cache_key_, is_value_ ? 0 : entry_.offset);
  if (bytes_ != nullptr || entry_.length_class == kUnboundedLengthClass) return false;
  const uint64_t extent = LengthClassLimit(entry_.length_class);
  if (is_value_) {
    const AddressedValue at = ValueAt(entry_.offset);
    segment_->value_files()[at.file_index]->Prefetch(at.offset, extent);
    return true;
  }
  const bool worth_a_block = IsWorthABlock(fill_cache);
  if (!worth_a_block && !segment_->caches().kernel_caches_gets)
    bytes_ = blocks.PrefetchEntry(file_number_, RecordKey(entry_.offset), 0);
  if (bytes_ != nullptr) return false;
  const BlockSpan span = worth_a_block ? segment_->CacheableBlockOf(entry_.offset) : BlockSpan{};
  span.end == 0 ? segment_->file().Prefetch(entry_.offset, extent)
                : segment_->file().Prefetch(span.begin, span.end - span.begin);
  return true;
}

absl::StatusOr<bool> SegmentProbe::Finish(std::string_view tree_key, SequenceNumber at,
                                          bool fill_cache, FoundRecord* found) {
  VARVE_ASSERT(has_begun());
  const SequenceNumber ingested_at = segment_->info().ingested_at;
  if (at < ingested_at) [[unlikely]] {
    segment_ = nullptr;
    return false;
  }
  const Target target{tree_key, at, fill_cache};
  absl::StatusOr<bool> result = true;
  if (!is_only_ || !FindInMemory(target, found)) [[unlikely]] {
    result = Find(target, found);
    if (!result.ok()) [[unlikely]] {
      result = segment_->Report(result.status());
    } else if (*result && !found->too_large && IsSeparated(found->record) && !found->without_value)
        [[unlikely]] {
      result = FollowHandle(tree_key, found);  // damage of values is not the segment's
    }
  }
  if (result.ok() && *result && IsCompressed(found->record)) {
    if (absl::Status status = Decompress(found); !status.ok()) result = std::move(status);
  }
  found->record.sequence = std::max(found->record.sequence, ingested_at);
  segment_ = nullptr;
  return result;
}

void SegmentProbe::LookInCache(FoundRecord* found) const {
  if (is_value_ && (found->without_value || IsInKernel())) return found->pin.Release();
  found->pin =
      segment_->caches().blocks.Lookup(file_number_, cache_key_, is_value_ ? 0 : entry_.offset,
                                       LengthClassLimit(entry_.length_class));
}

inline bool SegmentProbe::IsOf(const Target& target, uint32_t shared, RecordView* record) const {
  if (shared == 0) {
    return record->key.size() == target.key.size() &&
           SameBytes(record->key.data(), target.key.data(), target.key.size());
  }
  if (!IsJoined(segment_->loaded_footer()->key_base, shared, record->key, target.key)) return false;
  record->key = target.key;
  return true;
}

bool SegmentProbe::FindInMemory(const Target& target, FoundRecord* found) const {
  LookInCache(found);
  if (!found->pin) return false;
  const std::string_view bytes = found->pin.data();
  RecordView* const record = &found->record;
  uint32_t shared = 0;
  if (is_value_) {
    if (ParseLargeOperation(bytes, record) == 0) return false;
  } else {
    const uint64_t at = entry_.offset - found->pin.base();
    if (found->pin.flagged() || at >= bytes.size() ||
        DecodeRecord(bytes.substr(at), file_number_, ChecksumMode::kTrusted, record, &shared) == 0)
      return false;
  }
  if (!IsOf(target, shared, record) || record->sequence > target.at || IsSeparated(*record))
    return false;
  segment_->caches().statistics.block_cache_hits.Add(1);
  return true;
}

absl::StatusOr<bool> SegmentProbe::Find(const Target& target, FoundRecord* found) {
  if (!segment_->range_tombstone_status().ok()) [[unlikely]]
    return UnsharedCopy(segment_->range_tombstone_status());
  OffsetTableCandidates candidates;
  if (is_only_) {
    candidates.push_back(entry_);
  } else {
    VARVE_RETURN_IF_ERROR(segment_->FindCandidates(hash_, &candidates));
  }
  absl::Status error;
  for (const OffsetTableEntry& candidate : candidates) {
    if (!is_only_) {
      Locate(candidate);
      LookInCache(found);
    }
    const absl::StatusOr<Outcome> outcome =
        is_value_ ? ReadValue(target, found) : ReadRecord(target, found);
    if (!outcome.ok()) {
      // The damaged record may be another key's, so the probe tries the other candidates.
      error.Update(outcome.status());
    } else if (*outcome != Outcome::kOtherKey) {
      return *outcome == Outcome::kFound;
    } else {
      segment_->caches().statistics.false_positives.Add(1);
    }
  }
  if (!error.ok()) return error;
  return false;
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::ReadRecord(const Target& target,
                                                               FoundRecord* found) const {
  SegmentCaches& caches = segment_->caches();
  if (caches.blocks.capacity() == 0) return ReadFromDisk(target, found);
  // Scans leave the blocks of larger records in the cache, too.
  ClockCache::Handle block = std::move(found->pin);
  if (block) {
    caches.statistics.block_cache_hits.Add(1);
  } else {
    const BlockSpan span =
        IsWorthABlock(target.fill_cache) ? segment_->CacheableBlockOf(entry_.offset) : BlockSpan{};
    if (span.end == 0) return ReadOwnEntry(target, found);
    VARVE_ASSIGN_OR_RETURN(block,
                           CachedBlock(*segment_, span, segment_->loaded_footer()->block_size,
                                       &caches.statistics.record_reads));
  }
  // The slot is wrong if it leads elsewhere, though the table's checksum is right.
  if (entry_.offset - block.base() >= block.data().size())
    return segment_->DamagedRecord(entry_.offset);
  const std::string_view window = block.data().substr(entry_.offset - block.base());
  const ChecksumMode mode = block.flagged() ? ChecksumMode::kVerify : ChecksumMode::kTrusted;
  found->pin = std::move(block);
  return Match(window, entry_.offset, mode, target, found);
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::ReadOwnEntry(const Target& target,
                                                                 FoundRecord* found) const {
  SegmentCaches& caches = segment_->caches();
  if (caches.kernel_caches_gets) return ReadFromDisk(target, found);
  const uint64_t offset = entry_.offset;
  found->pin = caches.blocks.Lookup(file_number_, RecordKey(offset), 0);
  if (found->pin) {
    caches.statistics.block_cache_hits.Add(1);
    // Nobody has verified what follows the record in the buffer.
    const std::string_view bytes = found->pin.data();
    return Match(bytes.substr(0, RecordSize(bytes)), offset, ChecksumMode::kTrusted, target, found);
  }
  caches.statistics.block_cache_misses.Add(1);
  VARVE_ASSIGN_OR_RETURN(const uint64_t extent, ExtentOfRecord());
  if (extent > found->most_bytes) {
    found->too_large = true;
    return Outcome::kFound;
  }
  ClockCache::Handle buffer = caches.blocks.New(extent);
  caches.statistics.record_reads.Add(1);
  VARVE_RETURN_IF_ERROR(segment_->ReadExactly(offset, extent, buffer.mutable_data()));
  RecordView record;
  uint32_t shared = 0;
  const size_t size =
      DecodeRecord(buffer.data(), file_number_, ChecksumMode::kVerify, &record, &shared);
  if (size == 0) return segment_->DamagedRecord(offset);
  const bool worth_keeping = target.fill_cache && IsOf(target, shared, &record);
  found->pin = worth_keeping
                   ? caches.blocks.Insert(file_number_, RecordKey(offset), std::move(buffer))
                   : std::move(buffer);
  return Match(found->pin.data().substr(0, size), offset, ChecksumMode::kTrusted, target, found);
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::ReadFromDisk(const Target& target,
                                                                 FoundRecord* found) const {
  found->pin.Release();
  VARVE_ASSIGN_OR_RETURN(const uint64_t extent, ExtentOfRecord());
  if (extent > found->most_bytes) {
    found->too_large = true;
    return Outcome::kFound;
  }
  if (found->storage.size() < extent) found->storage.resize(extent);
  segment_->caches().statistics.record_reads.Add(1);
  VARVE_RETURN_IF_ERROR(segment_->ReadExactly(entry_.offset, extent, found->storage.data()));
  return Match({found->storage.data(), extent}, entry_.offset, ChecksumMode::kVerify, target,
               found);
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::ReadValue(const Target& target,
                                                              FoundRecord* found) const {
  if (found->without_value) return FindBySeek(target, found);
  RecordView operation;
  if (found->pin) {
    segment_->caches().statistics.block_cache_hits.Add(1);
    if (ParseLargeOperation(found->pin.data(), &operation) == 0) {
      const AddressedValue at = ValueAt(entry_.offset);
      return segment_->value_files()[at.file_index]->Damaged(at.offset, "value: wrong size");
    }
  } else {
    VARVE_RETURN_IF_ERROR(LoadValue(target, &operation, found));
    if (found->too_large) return Outcome::kFound;
  }
  if (operation.key != target.key) return Outcome::kOtherKey;
  if (operation.sequence > target.at) return FindBySeek(target, found);
  found->record = operation;
  return Outcome::kFound;
}

absl::Status SegmentProbe::LoadValue(const Target& target, RecordView* operation,
                                     FoundRecord* found) const {
  SegmentCaches& caches = segment_->caches();
  const AddressedValue at = ValueAt(entry_.offset);
  ValueFile& file = *segment_->value_files()[at.file_index];
  const bool cached = caches.blocks.capacity() > 0 && !IsInKernel();
  if (cached) caches.statistics.block_cache_misses.Add(1);
  uint64_t extent = LengthClassLimit(entry_.length_class);
  if (entry_.length_class == kUnboundedLengthClass) {
    char header[kMaxLargeHeaderSize];
    caches.statistics.record_reads.Add(1);
    VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(at.offset, sizeof(header), header));
    extent = LargeOperationSize({header, read});
    if (extent == 0 || extent > kMaxBatchBytes + kMaxKeySize)
      return file.Damaged(at.offset, "value: wrong size");
  }
  if (extent > found->most_bytes) {
    found->too_large = true;
    return absl::OkStatus();
  }
  char* buffer = nullptr;
  if (IsInKernel()) {
    if (found->storage.size() < extent) found->storage.resize(extent);
    buffer = found->storage.data();
  } else {
    found->pin = caches.blocks.New(extent);
    buffer = found->pin.mutable_data();
  }
  caches.statistics.record_reads.Add(1);
  VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(at.offset, extent, buffer));
  if (DecodeLargeOperation({buffer, read}, operation) == 0)
    return file.Damaged(at.offset, "value: wrong checksum or size");
  if (target.fill_cache && cached && operation->key == target.key) {
    found->pin = caches.blocks.Insert(file_number_, cache_key_, std::move(found->pin));
    // If another thread was faster, the value lies in that thread's entry.
    ParseLargeOperation(found->pin.data(), operation);
  }
  return absl::OkStatus();
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::FindBySeek(const Target& target,
                                                               FoundRecord* found) const {
  found->pin.Release();
  SegmentIterator records(segment_, target.fill_cache);
  records.Seek(target.key, target.at);
  VARVE_RETURN_IF_ERROR(records.status());
  if (!records.Valid() || records.record().key != target.key) return Outcome::kOtherKey;
  const RecordView& record = records.record();
  found->storage.assign(record.key).append(record.value).append(record.metadata);
  found->record = record;
  const std::string_view bytes = found->storage;
  found->record.key = bytes.substr(0, record.key.size());
  found->record.value = bytes.substr(record.key.size(), record.value.size());
  found->record.metadata = bytes.substr(record.key.size() + record.value.size());
  return Outcome::kFound;
}

absl::Status SegmentProbe::Decompress(FoundRecord* found) const {
  RecordView& record = found->record;
  if (found->too_large || found->without_value) return absl::OkStatus();
  VARVE_ASSERT(!IsSeparated(record));
  if (PlainSizeOf(record.value) > found->most_bytes) {
    found->too_large = true;
    return absl::OkStatus();
  }
  // A record that was found past the table is the segment's own.
  if (is_value_ && record.decoder == nullptr) {
    CompressedValue value;
    const bool is_value = ParseCompressedValue(record.value, &value);
    if (is_value && found->plain.size() < value.plain_size) found->plain.resize(value.plain_size);
    if (!is_value || !DecompressValue(value, nullptr, found->plain.data())) {
      const AddressedValue at = ValueAt(entry_.offset);
      return segment_->value_files()[at.file_index]->Damaged(at.offset,
                                                             "value: it can't be decompressed");
    }
    record.value = std::string_view(found->plain).substr(0, value.plain_size);
  } else {
    VARVE_ASSIGN_OR_RETURN(record.value, segment_->decoder().PlainValue(record, &found->plain));
  }
  record.flags &= static_cast<uint8_t>(~kCompressed);
  return absl::OkStatus();
}

absl::StatusOr<bool> SegmentProbe::FollowHandle(std::string_view tree_key,
                                                FoundRecord* found) const {
  ValueHandle handle;
  const std::shared_ptr<ValueFile> file = DecodeValueHandle(found->record.value, &handle)
                                              ? segment_->caches().values.Find(handle.file_number)
                                              : nullptr;
  if (file == nullptr)
    return segment_->Report(Corruption(segment_->file().path(), 0,
                                       "segment record: the place of its value makes no sense"));
  if (handle.operation_size > found->most_bytes) {
    found->too_large = true;
    return true;
  }
  const SequenceNumber sequence = found->record.sequence;
  segment_->caches().statistics.record_reads.Add(1);
  std::string bytes;
  VARVE_RETURN_IF_ERROR(
      file->ReadOperation(handle, UserKeyOf(tree_key), sequence, &bytes, &found->record));
  found->pin.Release();
  // The bytes stay where they are: no operation is as short as to lie in the string itself.
  found->storage.swap(bytes);
  return true;
}

absl::StatusOr<uint64_t> SegmentProbe::ExtentOfRecord() const {
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, segment_->Footer());
  const uint64_t available = footer->data_size - std::min(footer->data_size, entry_.offset);
  if (entry_.length_class != kUnboundedLengthClass)
    return std::min(LengthClassLimit(entry_.length_class), available);
  char header[kMaxRecordHeaderSize];
  const size_t header_size = std::min<uint64_t>(sizeof(header), available);
  segment_->caches().statistics.record_reads.Add(1);
  VARVE_RETURN_IF_ERROR(segment_->ReadExactly(entry_.offset, header_size, header));
  const uint64_t size = RecordSize({header, header_size});
  if (size == 0 || size > available) return segment_->DamagedRecord(entry_.offset);
  return size;
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::Match(std::string_view window, uint64_t offset,
                                                          ChecksumMode mode, const Target& target,
                                                          FoundRecord* found) const {
  uint32_t shared = 0;
  size_t size = DecodeRecord(window, segment_->info().number, mode, &found->record, &shared);
  if (size == 0) return segment_->DamagedRecord(offset);
  if (!IsOf(target, shared, &found->record)) return Outcome::kOtherKey;
  while (found->record.sequence > target.at) {
    window.remove_prefix(size);
    offset += size;
    // The window does not hold the whole record, or the record is damaged. Reading it anew tells
    // which.
    size = DecodeRecord(window, segment_->info().number, mode, &found->record, &shared);
    if (size == 0) return ReadOlder(offset, target, found);
    if (!IsOf(target, shared, &found->record)) return Outcome::kNoOlderVersion;
  }
  return Outcome::kFound;
}

absl::StatusOr<SegmentProbe::Outcome> SegmentProbe::ReadOlder(uint64_t offset, const Target& target,
                                                              FoundRecord* found) const {
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, segment_->Footer());
  found->pin.Release();
  uint64_t wanted = kSegmentPageSize;
  while (offset < footer->data_size) {
    const uint64_t extent = std::min(wanted, footer->data_size - offset);
    if (found->storage.size() < extent) found->storage.resize(extent);
    segment_->caches().statistics.record_reads.Add(1);
    VARVE_RETURN_IF_ERROR(segment_->ReadExactly(offset, extent, found->storage.data()));
    std::string_view window(found->storage.data(), extent);
    wanted = kSegmentPageSize;
    while (!window.empty()) {
      uint32_t shared = 0;
      const size_t size = DecodeRecord(window, segment_->info().number, ChecksumMode::kVerify,
                                       &found->record, &shared);
      if (size == 0) {
        const uint64_t available = footer->data_size - offset;
        const size_t needed = std::max(RecordSize(window), kMaxRecordHeaderSize);
        if (needed <= window.size() || window.size() == available ||
            RecordSize(window) > available) {
          return segment_->DamagedRecord(offset);
        }
        wanted = std::max<uint64_t>(wanted, needed);
        break;
      }
      if (!IsOf(target, shared, &found->record)) return Outcome::kNoOlderVersion;
      if (found->record.sequence <= target.at) return Outcome::kFound;
      window.remove_prefix(size);
      offset += size;
    }
  }
  return Outcome::kNoOlderVersion;
}

}  // namespace varve
