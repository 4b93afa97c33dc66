// The quick half of the record format (db/format/record_format.h): what nearly all records are is
// decoded in place, without a call. The gain is stated where loops use it
// (db/segment/window_cursor.h).
//
// Thread-safety: stateless functions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "db/format/key_base.h"
#include "db/format/record_format.h"
#include "type/record.h"
#include "util/base/coding.h"

namespace varve {

// The table maps each first byte to the same without the mark of sharing, if it says a kind and
// flags as nearly all records have, and else to 0.
inline constexpr auto kUsualKinds = [] {
  std::array<uint8_t, 256> usual = {};
  for (size_t byte = 0; byte < usual.size(); ++byte) {
    const size_t kind = byte & kRecordKindMask;
    if ((byte & (kHasExpiry | kHasMetadata)) != 0) continue;
    if (kind >= kFirstRecordKind && kind <= kLastRecordKind)
      usual[byte] = static_cast<uint8_t>(byte);
    if (kind >= kFirstSharingKind && kind <= kLastSharingKind)
      usual[byte] = static_cast<uint8_t>(byte - kSharingKinds);
  }
  return usual;
}();
inline constexpr int kSharingBit = 3;  // of the usual kinds, those that share have it
static_assert(kLastRecordKind >> kSharingBit == 0 && kFirstSharingKind >> kSharingBit == 1);

// Decodes a varint of up to 8 bytes with one load and no loop. Returns how many bytes it takes; 0
// if it is longer, or if a shorter form exists.
// Requires: 8 bytes may be read from `at` on.
inline size_t DecodeShortSequence(const char* at, uint64_t* value) {
  const uint64_t word = DecodeFixed64(at);
  // The high bit of each byte that ends a varint.
  const uint64_t last = ~word & 0x8080808080808080u;
  if (last == 0) [[unlikely]]
    return 0;
  const int bits = std::countr_zero(last) + 1;  // of the encoding
  const uint64_t bytes = word & (~uint64_t{0} >> (64 - bits));
  if (bits > 8 && bytes >> (bits - 8) == 0) [[unlikely]]
    return 0;
  // Squeezes out every eighth bit, pairwise: 7 + 7 bits, 14 + 14, 28 + 28.
  uint64_t packed = (bytes & 0x007f007f007f007fu) | (bytes & 0x7f007f007f007f00u) >> 1;
  packed = (packed & 0x00003fff00003fffu) | (packed & 0x3fff00003fff0000u) >> 2;
  *value = (packed & 0x000000000fffffffu) | (packed & 0x0fffffff00000000u) >> 4;
  return static_cast<size_t>(bits) / 8;
}

// A usual record is what nearly all records are: it holds less than 128 bytes of its key and a
// value below 16 KiB, and has neither expiry nor metadata nor a cause.
struct UsualRecord {
  const char* own_key;  // behind the shared bytes; the value follows
  uint32_t own_key_size;
  uint32_t value_size;
  uint32_t shared;
  uint8_t kind_and_flags;  // the kind is that of a record with a whole key
  SequenceNumber sequence;

  const char* value() const { return own_key + own_key_size; }
  const char* end() const { return value() + value_size; }
};

// Decodes the record at `data`. Returns false if it is none of the usual ones. The end of the
// record is not compared with the end of the data, and its checksum not verified.
// Requires: kMaxRecordHeaderSize bytes may be read.
[[gnu::always_inline]] inline bool DecodeUsualRecord(const char* data, UsualRecord* record) {
  // The fields before the sequence take 9 bytes at most, those of the sequence 8.
  static_assert(kMaxRecordHeaderSize >= 9 + sizeof(uint64_t));
  const uint64_t word = DecodeFixed64(data + kRecordChecksumSize);
  record->kind_and_flags = kUsualKinds[word & 0xff];
  const uint32_t shares = static_cast<uint32_t>(word) >> kSharingBit & 1;
  record->shared = static_cast<uint32_t>(word >> 8) & 0xff & -shares;
  const uint64_t sizes = word >> (8 + 8 * shares);
  record->own_key_size = sizes & 0xff;
  uint32_t value_size = sizes >> 8 & 0xff;
  if (record->kind_and_flags == 0 || record->shared < kLeastSharedBytes * shares ||
      record->own_key_size >= 0x80) [[unlikely]]
    return false;
  const char* at = data + kRecordChecksumSize + 3 + shares;
  if (value_size >= 0x80) {
    const uint32_t high = sizes >> 16 & 0xff;
    if (high == 0 || high >= 0x80) return false;
    value_size = (value_size & 0x7f) | high << 7;
    ++at;
  }
  record->value_size = value_size;
  const size_t sequence_size = DecodeShortSequence(at, &record->sequence);
  record->own_key = at + sequence_size;
  return sequence_size != 0;
}

// Stores views of the record in `*view`; its key lacks the shared bytes.
[[gnu::always_inline]] inline void View(const UsualRecord& record, RecordView* view) {
  *view = {.key = {record.own_key, record.own_key_size},
           .value = {record.value(), record.value_size},
           .metadata = {record.own_key, 0},
           .sequence = record.sequence,
           .kind = static_cast<RecordKind>(record.kind_and_flags & kRecordKindMask),
           .flags = static_cast<uint8_t>(record.kind_and_flags & ~kRecordKindMask)};
}

}  // namespace varve
