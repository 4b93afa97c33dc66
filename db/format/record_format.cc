#include "db/format/record_format.h"

#include <array>
#include <bit>

#include "db/format/key_base.h"
#include "db/format/record_extras.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr uint8_t kKindMask = 0x0f;
constexpr auto kFirstKind = static_cast<uint8_t>(RecordKind::kValue);
constexpr auto kLastKind = static_cast<uint8_t>(RecordKind::kSwitchGeneration);
constexpr auto kFirstKindWithCause = static_cast<uint8_t>(RecordKind::kValueForExpiry);
constexpr auto kLastKindWithCause = static_cast<uint8_t>(RecordKind::kTombstoneOfEvicted);
// On disk the kind of a record that shares bytes of its key: of a value 13, of a tombstone 14.
constexpr uint8_t kSharing = 12;
constexpr auto kFirstSharing = static_cast<uint8_t>(RecordKind::kValue) + kSharing;
constexpr auto kLastSharing = static_cast<uint8_t>(RecordKind::kTombstone) + kSharing;
constexpr uint32_t kMaxPart = (uint32_t{1} << 30) - 1;  // so that no sum of parts overflows

// Of each first byte: the same without the mark of sharing, if it says a kind and flags as nearly
// all records have (DecodeRecord), else 0.
constexpr auto kUsual = [] {
  std::array<uint8_t, 256> usual = {};
  for (size_t byte = 0; byte < usual.size(); ++byte) {
    const size_t kind = byte & kKindMask;
    if ((byte & (kHasExpiry | kHasMetadata)) != 0) continue;
    if (kind >= kFirstKind && kind <= kLastKind) usual[byte] = static_cast<uint8_t>(byte);
    if (kind >= kFirstSharing && kind <= kLastSharing)
      usual[byte] = static_cast<uint8_t>(byte - kSharing);
  }
  return usual;
}();
constexpr uint8_t kSharingBit = 8;  // of the usual kinds, those that share have it
static_assert(kLastKind < kSharingBit && kFirstSharing >= kSharingBit);

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

// Decodes a varint of up to 8 bytes with one load and no loop. Returns how many bytes it takes; 0
// if it is longer, or if a shorter form exists.
// Requires: 8 bytes may be read from `at` on.
inline size_t DecodeShortSequence(const char* at, uint64_t* value) {
  const uint64_t word = DecodeFixed64(at);
  const uint64_t last = ~word & 0x8080808080808080u;  // high bits of the bytes that end a varint
  if (last == 0) [[unlikely]]
    return 0;
  const int bits = std::countr_zero(last) + 1;  // of the encoding: 8, 16 .. 64
  const uint64_t bytes = word & (~uint64_t{0} >> (64 - bits));
  if (bits > 8 && bytes >> (bits - 8) == 0) [[unlikely]]
    return 0;
  // Squeezes out every eighth bit, pairwise: 7 + 7 bits, 14 + 14, 28 + 28.
  uint64_t packed = (bytes & 0x007f007f007f007fu) | (bytes & 0x7f007f007f007f00u) >> 1;
  packed = (packed & 0x00003fff00003fffu) | (packed & 0x3fff00003fff0000u) >> 2;
  *value = (packed & 0x000000000fffffffu) | (packed & 0x0fffffff00000000u) >> 4;
  return static_cast<size_t>(bits) / 8;
}

// Returns false if `data` doesn't hold a whole header or it makes no sense.
inline bool DecodeHeader(std::string_view data, Header* header) {
  if (data.size() <= kRecordChecksumSize) return false;
  const char* at = data.data() + kRecordChecksumSize;
  const char* const limit = data.data() + data.size();
  header->kind_and_flags = static_cast<uint8_t>(*at++);
  uint8_t kind = header->kind_and_flags & kKindMask;
  if (kind >= kFirstSharing && kind <= kLastSharing) {
    if (at == limit) return false;
    header->shared = static_cast<uint8_t>(*at++);
    if (header->shared < kLeastSharedBytes) return false;
    header->kind_and_flags -= kSharing;
    kind -= kSharing;
  }
  if ((kind < kFirstKind || kind > kLastKind) &&
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
  *at++ = static_cast<char>((kind + (shared == 0 ? 0 : kSharing)) | (record.flags & ~kKindMask));
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

namespace {

inline bool IsIntact(std::string_view record, uint64_t checksum_seed) {
  return DecodeFixed32(record.data()) == RecordChecksum(record, checksum_seed);
}

// Does what DecodeRecord does, for records of any kind.
[[gnu::noinline]] size_t DecodeAnyRecord(std::string_view data, uint64_t checksum_seed,
                                         ChecksumMode mode, RecordView* record, uint32_t* shared) {
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
  const auto kind = static_cast<RecordKind>(header.kind_and_flags & kKindMask);
  record->kind = KindWithoutCause(kind);
  record->cause = CauseOf(kind);
  record->flags = header.kind_and_flags & ~kKindMask;
  record->decoder = nullptr;
  return size;
}

[[gnu::noinline]] size_t SizeIfIntact(std::string_view record, uint64_t checksum_seed) {
  return IsIntact(record, checksum_seed) ? record.size() : 0;
}

}  // namespace

// Decodes at once what nearly all records are: with a key below 128 bytes and a value below 16 KiB,
// with neither expiry nor metadata nor a cause, and not at the end of `data`. Whatever else there
// is stands behind calls at the end, so that this path saves no registers.
size_t DecodeRecord(std::string_view data, uint64_t checksum_seed, ChecksumMode mode,
                    RecordView* record, uint32_t* shared) {
  const auto any = [&] { return DecodeAnyRecord(data, checksum_seed, mode, record, shared); };
  // Of the 38 bytes, the fields before the sequence take 10.
  static_assert(kMaxRecordHeaderSize >= 10 + sizeof(uint64_t));
  if (data.size() < kMaxRecordHeaderSize) [[unlikely]]
    return any();
  const char* at = data.data() + kRecordChecksumSize;
  const auto byte = [&at](size_t index) { return static_cast<uint8_t>(at[index]); };
  const uint8_t kind_and_flags = kUsual[byte(0)];
  if (kind_and_flags == 0) [[unlikely]]
    return any();
  const uint32_t shares = byte(0) / kSharingBit & 1;
  at += shares;
  const uint32_t base_size = byte(0) & -shares;
  const uint32_t key_size = byte(1);
  uint32_t value_size = byte(2);
  if (base_size < kLeastSharedBytes * shares || key_size >= 0x80) [[unlikely]]
    return any();
  at += 3;
  if (value_size >= 0x80) {
    if (byte(0) == 0 || byte(0) >= 0x80) return any();
    value_size = (value_size & 0x7f) | uint32_t{byte(0)} << 7;
    ++at;
  }
  SequenceNumber sequence;
  const size_t sequence_size = DecodeShortSequence(at, &sequence);
  if (sequence_size == 0) [[unlikely]]
    return any();
  const char* const key = at + sequence_size;
  const size_t size = static_cast<size_t>(key - data.data()) + key_size + value_size;
  if (size > data.size()) [[unlikely]]
    return 0;
  *shared = base_size;
  *record = {.key = {key, key_size},
             .value = {key + key_size, value_size},
             .metadata = {key, 0},
             .sequence = sequence,
             .kind = static_cast<RecordKind>(kind_and_flags & kKindMask),
             .flags = static_cast<uint8_t>(kind_and_flags & ~kKindMask)};
  if (mode == ChecksumMode::kTrusted) return size;
  return SizeIfIntact(data.substr(0, size), checksum_seed);
}

}  // namespace varve
