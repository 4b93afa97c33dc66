#include "db/format/large_operation.h"

#include <xxhash.h>

#include "db/format/record_extras.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kSmallestKey = 4;  // no tree key is shorter than its generation

struct LargeHeader {
  uint8_t flags = 0;  // kSeparatedValue left out
  WriteCause cause = WriteCause::kWrite;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  RecordExtras extras;
  size_t seal_offset = 0;
  size_t size = 0;  // bytes before metadata, key and value

  uint64_t operation_size() const {
    return uint64_t{size} + extras.metadata_size + key_size + value_size;
  }
};

// Returns false if `data` does not begin with the header of a large operation.
bool ParseLargeHeader(std::string_view data, LargeHeader* header) {
  if (data.empty()) return false;
  const char* at = data.data();
  const char* const limit = at + data.size();
  const uint8_t kind_and_flags = static_cast<uint8_t>(*at++);
  const RecordKind kind = static_cast<RecordKind>(kind_and_flags & 0x0f);
  if (KindWithoutCause(kind) != RecordKind::kValue) return false;
  header->cause = CauseOf(kind);
  if ((kind_and_flags & kSeparatedValue) == 0) return false;
  header->flags = kind_and_flags & 0xf0 & ~kSeparatedValue;
  if ((at = DecodeVarint32(at, limit, &header->key_size)) == nullptr) return false;
  if ((at = DecodeVarint32(at, limit, &header->value_size)) == nullptr) return false;
  if (static_cast<size_t>(limit - at) < kLargeSealSize) return false;
  header->seal_offset = static_cast<size_t>(at - data.data());
  at += kLargeSealSize;
  if ((at = DecodeExtras(at, limit, header->flags, &header->extras)) == nullptr) return false;
  header->size = static_cast<size_t>(at - data.data());
  return header->key_size >= kSmallestKey;
}

size_t Parse(std::string_view data, LargeHeader* header, RecordView* record) {
  if (!ParseLargeHeader(data, header) || header->operation_size() > data.size()) return 0;
  const char* const at = data.data() + header->size;
  const size_t metadata_size = header->extras.metadata_size;
  *record = {.key = {at + metadata_size, header->key_size},
             .value = {at + metadata_size + header->key_size, header->value_size},
             .metadata = {at, metadata_size},
             .sequence = DecodeFixed64(data.data() + header->seal_offset),
             .expiry_ms = header->extras.expiry_ms,
             .flags = header->flags,
             .cause = header->cause};
  return header->operation_size();
}

}  // namespace

void AppendLargeOperation(const RecordView& record, std::string* destination) {
  const size_t begin = destination->size();
  const uint8_t flags = record.flags | kSeparatedValue;
  destination->push_back(static_cast<char>(static_cast<uint8_t>(record.kind) | flags));
  PutVarint32(destination, static_cast<uint32_t>(record.key.size()));
  PutVarint32(destination, static_cast<uint32_t>(record.value.size()));
  const size_t seal_offset = destination->size() - begin;
  destination->append(kLargeSealSize, '\0');
  if ((flags & kHasExpiry) != 0) PutFixed64(destination, record.expiry_ms);
  if ((flags & kHasMetadata) != 0) PutLengthPrefixed(destination, record.metadata);
  destination->append(record.key).append(record.value);
  const uint64_t body_hash =
      LargeBodyHash(std::string_view(*destination).substr(begin), seal_offset);
  SealLargeOperation(destination->data() + begin, seal_offset, record.sequence, body_hash);
}

size_t LargeOperationSizeOf(const RecordView& record) {
  size_t size =
      1 + VarintLength(record.key.size()) + VarintLength(record.value.size()) + kLargeSealSize;
  if ((record.flags & kHasExpiry) != 0) size += 8;
  if ((record.flags & kHasMetadata) != 0)
    size += VarintLength(record.metadata.size()) + record.metadata.size();
  return size + record.key.size() + record.value.size();
}

uint64_t LargeBodyHash(std::string_view operation, size_t seal_offset) {
  const std::string_view body = operation.substr(seal_offset + kLargeSealSize);
  return XXH3_64bits_withSeed(body.data(), body.size(), XXH3_64bits(operation.data(), seal_offset));
}

void SealLargeOperation(char* operation, size_t seal_offset, SequenceNumber sequence,
                        uint64_t body_hash) {
  VARVE_ASSERT(seal_offset > 0);
  char* const seal = operation + seal_offset;
  EncodeFixed64(seal, sequence);
  EncodeFixed32(seal + 8, Checksum({seal, 8}, body_hash));
}

bool LargeSealFits(std::string_view operation, size_t seal_offset, uint64_t body_hash,
                   SequenceNumber* sequence) {
  const char* const seal = operation.data() + seal_offset;
  *sequence = DecodeFixed64(seal);
  return DecodeFixed32(seal + 8) == Checksum({seal, 8}, body_hash);
}

uint64_t LargeOperationSize(std::string_view data) {
  LargeHeader header;
  return ParseLargeHeader(data, &header) ? header.operation_size() : 0;
}

size_t ParseLargeOperation(std::string_view data, RecordView* record) {
  LargeHeader header;
  return Parse(data, &header, record);
}

size_t DecodeLargeOperation(std::string_view data, RecordView* record) {
  LargeHeader header;
  const size_t size = Parse(data, &header, record);
  if (size == 0) return 0;
  const std::string_view whole = data.substr(0, size);
  const uint64_t body_hash = LargeBodyHash(whole, header.seal_offset);
  return LargeSealFits(whole, header.seal_offset, body_hash, &record->sequence) ? size : 0;
}

}  // namespace varve
