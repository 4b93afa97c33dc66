#include "db/segment/segment_decoder.h"

#include <algorithm>

#include "db/compression/value_codec.h"
#include "db/segment/segment.h"
#include "db/segment/segment_iterator.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

absl::StatusOr<const ValueDictionary*> SegmentDecoder::Dictionary() {
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, segment_.Footer());
  absl::StatusOr<const ValueDictionary*> read = dictionary_.Get(segment_.file(), *footer);
  NoteIfDamage(read.status());
  return read;
}

absl::StatusOr<std::shared_ptr<const ValueDictionary>> SegmentDecoder::ShareDictionary() {
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter* footer, segment_.Footer());
  absl::StatusOr<std::shared_ptr<const ValueDictionary>> read =
      dictionary_.Share(segment_.file(), *footer);
  NoteIfDamage(read.status());
  return read;
}

void SegmentDecoder::NoteIfDamage(const absl::Status& read) {
  // What the device fails to read counts as damaged.
  if (absl::IsDataLoss(read) || absl::IsInternal(read)) segment_.NoteDamage();
}

Compression SegmentDecoder::CompressionOf(NamespaceGeneration generation) const {
  for (const CompressedBytes& each : segment_.info().compressed) {
    if (each.generation == generation) return each.compression;
  }
  return {};
}

absl::StatusOr<std::string_view> SegmentDecoder::PlainValue(const RecordView& record,
                                                            std::string* buffer) {
  CompressedValue value;
  if (!ParseCompressedValue(record.value, &value)) return UnreadableValue(record);
  const ValueDictionary* dictionary = nullptr;
  if (value.codec == ValueCodec::kZstdWithDictionary) {
    const absl::StatusOr<const ValueDictionary*> read = Dictionary();
    if (!read.ok()) return segment_.Report(read.status());
    dictionary = *read;
  }
  if (buffer->size() < value.plain_size) buffer->resize(value.plain_size);
  if (!DecompressValue(value, dictionary, buffer->data())) return UnreadableValue(record);
  return std::string_view(*buffer).substr(0, value.plain_size);
}

absl::Status SegmentDecoder::UnreadableValue(const RecordView& record) {
  segment_.NoteDamage();
  SegmentIterator records(&segment_, /*fill_cache=*/false);
  records.Seek(record.key, std::max(record.sequence, segment_.info().ingested_at));
  return segment_.Report(Corruption(segment_.file().path(), records.Valid() ? records.offset() : 0,
                                    "segment record: its value can't be decompressed"));
}

void SegmentDecoder::LoadDictionary() {
  TryWithMemory([this] { (void)Dictionary().ok(); });
}

}  // namespace varve
