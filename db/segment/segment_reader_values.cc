// SegmentReader: lookups of values that lie in other files.
#include <utility>

#include "db/format/large_operation.h"
#include "db/segment/segment_iterator.h"
#include "db/segment/segment_reader.h"
#include "db/segment/segment_values.h"
#include "util/base/status.h"
#include "varve/options.h"

namespace varve {
absl::StatusOr<SegmentReader::Outcome> SegmentReader::FindBySeek(const Target& target,
                                                                 bool fill_cache,
                                                                 FoundRecord* found) {
  found->pin.Release();
  SegmentIterator records(this, fill_cache);
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

absl::StatusOr<SegmentReader::Outcome> SegmentReader::ReadValue(const OffsetTableEntry& entry,
                                                                const Target& target,
                                                                bool fill_cache,
                                                                FoundRecord* found) {
  if (found->without_value) return FindBySeek(target, fill_cache, found);
  const AddressedValue at = ValueAt(entry.offset);
  if (at.file_index >= value_files_.size()) return DamagedRecord(entry.offset);
  ValueFile& file = *value_files_[at.file_index];
  const bool cached = caches_->blocks.capacity() > 0;
  RecordView operation;
  if (cached) found->pin = caches_->blocks.Lookup(file.number(), RecordKey(at.offset), 0);
  if (found->pin && cached) {
    caches_->statistics.block_cache_hits.Add(1);
    if (ParseLargeOperation(found->pin.data(), &operation) == 0)
      return file.Damaged(at.offset, "value: wrong size");
  } else {
    if (cached) caches_->statistics.block_cache_misses.Add(1);
    uint64_t extent = LengthClassLimit(entry.length_class);
    if (entry.length_class == kUnboundedLengthClass) {
      char header[kMaxLargeHeaderSize];
      caches_->statistics.record_reads.Add(1);
      VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(at.offset, sizeof(header), header));
      extent = LargeOperationSize({header, read});
      if (extent == 0 || extent > kMaxBatchBytes + kMaxKeySize)
        return file.Damaged(at.offset, "value: wrong size");
    }
    if (extent > found->most_bytes) return TooLarge(found);
    found->pin = caches_->blocks.New(extent);
    caches_->statistics.record_reads.Add(1);
    VARVE_ASSIGN_OR_RETURN(const size_t read,
                           file.Read(at.offset, extent, found->pin.mutable_data()));
    if (DecodeLargeOperation(found->pin.data().substr(0, read), &operation) == 0)
      return file.Damaged(at.offset, "value: wrong checksum or size");
    if (fill_cache && cached && operation.key == target.key) {
      found->pin =
          caches_->blocks.Insert(file.number(), RecordKey(at.offset), std::move(found->pin));
      // Where another thread was first, it lies elsewhere.
      ParseLargeOperation(found->pin.data(), &operation);
    }
  }
  if (operation.key != target.key) return Outcome::kOtherKey;
  if (operation.sequence > target.at) return FindBySeek(target, fill_cache, found);
  found->record = operation;
  return Outcome::kFound;
}

absl::StatusOr<bool> SegmentReader::FollowPlace(std::string_view tree_key, FoundRecord* found) {
  ValuePlace place;
  const std::shared_ptr<ValueFile> file = DecodeValuePlace(found->record.value, &place)
                                              ? caches_->values.Find(place.file_number)
                                              : nullptr;
  if (file == nullptr)
    return Report(
        Corruption(file_->path(), 0, "segment record: the place of its value makes no sense"));
  if (place.operation_size > found->most_bytes) {
    TooLarge(found);
    return true;
  }
  const SequenceNumber sequence = found->record.sequence;
  caches_->statistics.record_reads.Add(1);
  std::string bytes;
  VARVE_RETURN_IF_ERROR(
      file->ReadOperation(place, UserKeyOf(tree_key), sequence, &bytes, &found->record));
  found->pin.Release();
  // The bytes stay where they are: no operation is as short as to lie in the string itself.
  found->storage.swap(bytes);
  return true;
}

}  // namespace varve
