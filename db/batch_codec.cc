#include "db/batch_codec.h"

#include "db/log_format.h"
#include "util/checksum.h"
#include "util/coding.h"
#include "util/hash.h"

namespace varve {
namespace {

// The record's checksum: the operations' hash mixed with the header fields behind the checksum.
uint32_t BatchChecksum(const char* header, uint64_t operations_hash) {
  return Checksum({header + 4, kBatchHeaderSize - 4}, operations_hash);
}

}  // namespace

uint64_t HashOperations(std::string_view operations) { return HashKey(operations); }

void SealBatch(SequenceNumber first, uint32_t count, uint64_t operations_hash, std::string* record) {
  char* header = record->data();
  EncodeFixed32(header + 4, static_cast<uint32_t>(record->size() - kBatchHeaderSize));
  EncodeFixed64(header + 8, first);
  EncodeFixed32(header + 16, count);
  EncodeFixed32(header, BatchChecksum(header, operations_hash));
}

uint32_t BatchChecksum(std::string_view record) {
  return BatchChecksum(record.data(), HashOperations(record.substr(kBatchHeaderSize)));
}

size_t DecodeBatch(std::string_view data, BatchHeader* header, std::string_view* operations) {
  if (data.size() < kBatchHeaderSize) return 0;
  header->size = DecodeFixed32(data.data() + 4);
  header->first = DecodeFixed64(data.data() + 8);
  header->count = DecodeFixed32(data.data() + 16);
  if (header->size > data.size() - kBatchHeaderSize) return 0;
  *operations = data.substr(kBatchHeaderSize, header->size);
  if (DecodeFixed32(data.data()) != BatchChecksum(data.data(), HashOperations(*operations))) return 0;
  return kBatchHeaderSize + header->size;
}

bool BatchReader::Next(RecordView* operation) {
  if (rest_.empty() || !ok_) return false;
  ok_ = false;
  const char* position = rest_.data();
  const char* const limit = position + rest_.size();
  const uint8_t first = static_cast<uint8_t>(*position++);
  operation->kind = static_cast<RecordKind>(first & 0x0f);
  operation->flags = first & 0xf0;
  uint32_t key_size = 0, value_size = 0, metadata_size = 0;
  if ((position = DecodeVarint32(position, limit, &key_size)) == nullptr) return false;
  if ((position = DecodeVarint32(position, limit, &value_size)) == nullptr) return false;
  operation->expiry_ms = 0;
  if (operation->flags & kHasExpiry) {
    if (limit - position < 8) return false;
    operation->expiry_ms = DecodeFixed64(position);
    position += 8;
  }
  operation->metadata = {};
  if (operation->flags & kHasMetadata) {
    if ((position = DecodeVarint32(position, limit, &metadata_size)) == nullptr) return false;
    if (static_cast<size_t>(limit - position) < metadata_size) return false;
    operation->metadata = {position, metadata_size};
    position += metadata_size;
  }
  if (static_cast<size_t>(limit - position) < size_t{key_size} + value_size) return false;
  if (key_size < 4) return false;  // no tree key is shorter than its generation
  operation->key = {position, key_size};
  operation->value = {position + key_size, value_size};
  rest_.remove_prefix(position + key_size + value_size - rest_.data());
  ok_ = true;
  return true;
}

}  // namespace varve
