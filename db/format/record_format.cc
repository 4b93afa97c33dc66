#include "db/format/record_format.h"

#include "db/format/key_base.h"
#include "db/format/record_decoding.h"
#include "db/format/record_extras.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr auto kFirstKindWithCause = static_cast<uint8_t>(RecordKind::kValueForExpiry);
constexpr auto kLastKindWithCause = static_cast<uint8_t>(RecordKind::kTombstoneOfEvicted);
constexpr uint32_t kMaxPart = (uint32_t{1} << 30) - 1;  // so that no sum of parts overflows

struct Header {
  uint8_t kind_and_flags = 0;  // the kind is that of a record with a whole key
  uint32_t shared = 0;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  uint64_t sequence = 0;
  RecordExtras extras;
  size_t size = 0;  // bytes before metadata, key and value

  size_t record_size() const { return size + extras.metadata_size + size_t{key_size} + value_size; }
};

// Returns false if `data` doesn't hold a whole header or it makes no sense.
inline bool DecodeHeader(std::string_view data, Header* header) {
  if (data.size() <= kRecordChecksumSize) return false;
  const char* at = data.data() + kRecordChecksumSize;
  const char* const limit = data.data() + data.size();
  header->kind_and_flags = static_cast<uint8_t>(*at++);
  uint8_t kind = header->kind_and_flags & kRecordKindMask;
  if (kind >= kFirstSharingKind && kind <= kLastSharingKind) {
    if (at == limit) return false;
    header->shared = static_cast<uint8_t>(*at++);
    if (header->shared < kLeastSharedBytes) return false;
    header->kind_and_flags -= kSharingKinds;
    kind -= kSharingKinds;
  }
  if ((kind < kFirstRecordKind || kind > kLastRecordKind) &&
      (kind < kFirstKindWithCause || kind > kLastKindWithCause))
    return false;
  if ((at = DecodeVarint32(at, limit, &header->key_size)) == nullptr) return false;
  if ((at = DecodeVarint32(at, limit, &header->value_size)) == nullptr) return false;
  if ((at = DecodeVarint64(at, limit, &header->sequence)) == nullptr) return false;
  if ((header->kind_and_flags & (kHasExpiry | kHasMetadata)) != 0) [[unlikely]] {
    at = DecodeExtras(at, limit, header->kind_and_flags, &header->extras);
    if (at == nullptr) return false;
  }
  header->size = static_cast<size_t>(at - data.data());
  return header->key_size <= kMaxPart && header->value_size <= kMaxPart &&
         header->extras.metadata_size <= kMaxPart;
}

}  // namespace

size_t AppendRecord(const RecordView& record, uint64_t checksum_seed, std::string* destination,
                    uint32_t shared) {
  VARVE_ASSERT(record.key.size() <= kMaxPart && record.value.size() <= kMaxPart);
  VARVE_ASSERT(shared == 0 || (shared <= record.key.size() && record.cause == WriteCause::kWrite));
  const std::string_view key = record.key.substr(shared);
  VARVE_ASSERT(record.metadata.empty() || (record.flags & kHasMetadata) != 0);
  const size_t start = destination->size();
  char header[kMaxRecordHeaderSize] = {};
  char* at = header + kRecordChecksumSize;
  const auto kind = static_cast<uint8_t>(KindOf(record.kind, record.cause));
  *at++ = static_cast<char>((kind + (shared == 0 ? 0 : kSharingKinds)) |
                            (record.flags & ~kRecordKindMask));
  if (shared != 0) *at++ = static_cast<char>(shared);
  at = EncodeVarint32(at, static_cast<uint32_t>(key.size()));
  at = EncodeVarint32(at, static_cast<uint32_t>(record.value.size()));
  at = EncodeVarint64(at, record.sequence);
  if ((record.flags & kHasExpiry) != 0) {
    EncodeFixed64(at, record.expiry_ms);
    at += 8;
  }
  const bool has_metadata = (record.flags & kHasMetadata) != 0;
  if (has_metadata) at = EncodeVarint32(at, static_cast<uint32_t>(record.metadata.size()));
  destination->append(header, static_cast<size_t>(at - header));
  if (has_metadata) destination->append(record.metadata);
  destination->append(key);
  destination->append(record.value);
  const std::string_view whole = std::string_view(*destination).substr(start);
  EncodeFixed32(destination->data() + start, RecordChecksum(whole, checksum_seed));
  return destination->size() - start;
}

uint32_t RecordChecksum(std::string_view record, uint64_t checksum_seed) {
  return Checksum(record.substr(kRecordChecksumSize), checksum_seed);
}

size_t RecordSize(std::string_view data) {
  Header header;
  return DecodeHeader(data, &header) ? header.record_size() : 0;
}

bool IsIntact(std::string_view record, uint64_t checksum_seed) {
  return DecodeFixed32(record.data()) ==
         Checksum({record.data() + kRecordChecksumSize, record.size() - kRecordChecksumSize},
                  checksum_seed);
}

namespace {

size_t DecodeAnyRecord(std::string_view data, uint64_t checksum_seed, ChecksumMode mode,
                       RecordView* record, uint32_t* shared) {
  Header header;
  if (!DecodeHeader(data, &header)) return 0;
  const size_t size = header.record_size();
  if (size > data.size() ||
      (mode == ChecksumMode::kVerify && !IsIntact(data.substr(0, size), checksum_seed)))
    return 0;
  const char* at = data.data() + header.size;
  record->metadata = {at, header.extras.metadata_size};
  at += header.extras.metadata_size;
  record->key = {at, header.key_size};
  at += header.key_size;
  record->value = {at, header.value_size};
  *shared = header.shared;
  record->sequence = header.sequence;
  record->expiry_ms = header.extras.expiry_ms;
  const auto kind = static_cast<RecordKind>(header.kind_and_flags & kRecordKindMask);
  record->kind = KindWithoutCause(kind);
  record->cause = CauseOf(kind);
  record->flags = header.kind_and_flags & ~kRecordKindMask;
  record->decoder = nullptr;
  return size;
}

[[gnu::noinline]] size_t SizeIfIntact(std::string_view record, uint64_t checksum_seed) {
  return IsIntact(record, checksum_seed) ? record.size() : 0;
}

}  // namespace

size_t DecodeRecord(std::string_view data, uint64_t checksum_seed, ChecksumMode mode,
                    RecordView* record, uint32_t* shared) {
  UsualRecord usual;
  if (data.size() < kMaxRecordHeaderSize || !DecodeUsualRecord(data.data(), &usual)) [[unlikely]]
    return DecodeAnyRecord(data, checksum_seed, mode, record, shared);
  const auto size = static_cast<size_t>(usual.end() - data.data());
  if (size > data.size()) [[unlikely]]
    return 0;
  *shared = usual.shared;
  View(usual, record);
  if (mode == ChecksumMode::kTrusted) return size;
  return SizeIfIntact(data.substr(0, size), checksum_seed);
}

}  // namespace varve
