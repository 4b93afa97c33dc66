#include "db/format/batch_codec.h"

#include <xxhash.h>

#include "db/format/log_format.h"
#include "db/format/record_extras.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/hash.h"

namespace varve {
namespace {

// Returns the record's checksum: the operations' hash mixed with the header fields behind the
// checksum.
uint32_t BatchChecksum(const char* header, uint64_t operations_hash) {
  return Checksum({header + 4, kBatchHeaderSize - 4}, operations_hash);
}

// Hashes the operations of a batch that has large ones, the first of which has the sequence
// `first`. Returns false if no operation is large, a large one is damaged or other bytes make no
// sense.
bool HashWithLargeOperations(std::string_view operations, SequenceNumber first, uint64_t* hash) {
  OperationsHash hasher;
  BatchReader reader(operations);
  RecordView operation;
  const char* between = operations.data();
  bool has_large = false;
  for (SequenceNumber expected = first; reader.Next(&operation); ++expected) {
    if (reader.seal_offset() == 0) continue;
    const std::string_view bytes = reader.bytes();
    const uint64_t body_hash = LargeBodyHash(bytes, reader.seal_offset());
    SequenceNumber sequence = kNoSequence;
    if (!LargeSealFits(bytes, reader.seal_offset(), body_hash, &sequence) || sequence != expected)
      return false;
    hasher.Add({between, static_cast<size_t>(bytes.data() - between)}, body_hash);
    between = bytes.data() + bytes.size();
    has_large = true;
  }
  const char* const end = operations.data() + operations.size();
  *hash = hasher.Finish({between, static_cast<size_t>(end - between)});
  return has_large && reader.ok();
}

}  // namespace

uint64_t HashOperations(std::string_view operations) { return HashKey(operations); }

void OperationsHash::Add(std::string_view between, uint64_t body_hash) {
  if (!between.empty()) hash_ = XXH3_64bits_withSeed(between.data(), between.size(), hash_);
  char bytes[8];
  EncodeFixed64(bytes, body_hash);
  hash_ = XXH3_64bits_withSeed(bytes, sizeof(bytes), hash_);
}

uint64_t OperationsHash::Finish(std::string_view rest) {
  return rest.empty() ? hash_ : XXH3_64bits_withSeed(rest.data(), rest.size(), hash_);
}

void SealBatch(SequenceNumber first, uint32_t count, uint64_t operations_hash, char* record,
               size_t size) {
  VARVE_ASSERT(size >= kBatchHeaderSize);
  char* const header = record;
  EncodeFixed32(header + 4, static_cast<uint32_t>(size - kBatchHeaderSize));
  EncodeFixed64(header + 8, first);
  EncodeFixed32(header + 16, count);
  EncodeFixed32(header, BatchChecksum(header, operations_hash));
}

void AppendOperation(RecordKind kind, std::string_view tree_key, std::string_view value,
                     std::string* record) {
  VARVE_ASSERT(kind != RecordKind::kValue);  // which may be a large one
  record->push_back(static_cast<char>(kind));
  PutVarint64(record, tree_key.size());
  PutVarint64(record, value.size());
  record->append(tree_key).append(value);
}

std::array<char, kTimeMarkSize> EncodeTimeMark(SequenceNumber first, uint64_t instant_ms) {
  std::array<char, kTimeMarkSize> record;
  char* const instant = record.data() + kBatchHeaderSize;
  EncodeFixed64(instant, instant_ms);
  EncodeFixed32(record.data() + 4, static_cast<uint32_t>(kTimeMarkSize - kBatchHeaderSize));
  EncodeFixed64(record.data() + 8, first);
  EncodeFixed32(record.data() + 16, kTimeMarkCount);
  const uint64_t hash = HashOperations({instant, sizeof(uint64_t)});
  EncodeFixed32(record.data(), BatchChecksum(record.data(), hash));
  return record;
}

uint32_t BatchChecksum(std::string_view record) {
  const std::string_view operations = record.substr(kBatchHeaderSize);
  uint64_t hash = 0;
  if ((DecodeFixed32(record.data() + 16) & kHasLargeOperations) == 0) {
    hash = HashOperations(operations);
  } else {
    (void)HashWithLargeOperations(operations, DecodeFixed64(record.data() + 8), &hash);
  }
  return BatchChecksum(record.data(), hash);
}

size_t DecodeBatch(std::string_view data, BatchHeader* header, std::string_view* operations) {
  if (data.size() < kBatchHeaderSize) return 0;
  header->size = DecodeFixed32(data.data() + 4);
  header->first = DecodeFixed64(data.data() + 8);
  header->instant_ms = 0;
  header->count = DecodeFixed32(data.data() + 16) & ~kHasLargeOperations;
  if (header->size > data.size() - kBatchHeaderSize) return 0;
  *operations = data.substr(kBatchHeaderSize, header->size);
  uint64_t hash = 0;
  if ((DecodeFixed32(data.data() + 16) & kHasLargeOperations) == 0) {
    hash = HashOperations(*operations);
  } else if (!HashWithLargeOperations(*operations, header->first, &hash)) {
    return 0;
  }
  if (DecodeFixed32(data.data()) != BatchChecksum(data.data(), hash)) return 0;
  const size_t size = kBatchHeaderSize + header->size;
  if (header->count != kTimeMarkCount) [[likely]]
    return size;
  if (size != kTimeMarkSize) return 0;
  header->instant_ms = DecodeFixed64(operations->data());
  if (header->instant_ms == 0) return 0;
  header->size = header->count = 0;
  *operations = {};
  return size;
}

bool BatchReader::Next(RecordView* operation) {
  if (rest_.empty() || !ok_) return false;
  ok_ = false;
  const char* const begin = rest_.data();
  const char* const limit = begin + rest_.size();
  const char* position = begin;
  const uint8_t first = static_cast<uint8_t>(*position++);
  const RecordKind kind = static_cast<RecordKind>(first & 0x0f);
  operation->kind = KindWithoutCause(kind);
  operation->cause = CauseOf(kind);
  operation->flags = first & 0xf0 & ~kSeparatedValue;
  if ((first & kCompressed) != 0) return false;  // the log holds plain values
  uint32_t key_size = 0, value_size = 0;
  if ((position = DecodeVarint32(position, limit, &key_size)) == nullptr) return false;
  if ((position = DecodeVarint32(position, limit, &value_size)) == nullptr) return false;
  seal_offset_ = 0;
  if ((first & kSeparatedValue) != 0) [[unlikely]] {
    if (operation->kind != RecordKind::kValue ||
        static_cast<size_t>(limit - position) < kLargeSealSize)
      return false;
    seal_offset_ = static_cast<size_t>(position - begin);
    position += kLargeSealSize;
  }
  RecordExtras extras;
  if ((position = DecodeExtras(position, limit, operation->flags, &extras)) == nullptr)
    return false;
  if (static_cast<size_t>(limit - position) < size_t{extras.metadata_size} + key_size + value_size)
    return false;
  operation->expiry_ms = extras.expiry_ms;
  operation->metadata = {position, extras.metadata_size};
  position += extras.metadata_size;
  if (key_size < 4) return false;  // no tree key is shorter than its generation
  operation->key = {position, key_size};
  operation->value = {position + key_size, value_size};
  size_ = static_cast<size_t>(position + key_size + value_size - begin);
  rest_.remove_prefix(size_);
  ok_ = true;
  return true;
}

}  // namespace varve
