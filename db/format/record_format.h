// The record format is how a record stands in a segment: self-contained, so that one read of the
// right size at its offset gives key and value.
//
//      0   4  checksum of the rest of the record, seeded with the segment's number (a block of
//          another file never passes)
//      4   1  RecordKind | RecordFlags; the kind says the cause of the write, too, if that is not
//             plain (KindOf in type/record.h); 13 and 14 are a value and a tombstone of which a
//             part of the key stands elsewhere
//      .   1  how many bytes of the key are those of the key base (kinds 13 and 14)
//      .   v  varint32 key size, without the base's bytes, varint32 value size, varint64 sequence
//      .   8  expiry in ms since the epoch           (kHasExpiry)
//      .   v  varint32 size and bytes of metadata    (kHasMetadata)
//      .      key (tree key) or the rest of it, value
//
// A record whose kind is 13 or 14 needs the key base of its segment (db/format/key_base.h).
//
// The log's operations and large operations carry expiry and metadata in the same form
// (db/format/record_extras.h).
//
// Thread-safety: stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "type/record.h"

namespace varve {

inline constexpr size_t kRecordChecksumSize = 4;
// The first byte behind the checksum.
inline constexpr uint8_t kRecordKindMask = 0x0f;
inline constexpr auto kFirstRecordKind = static_cast<uint8_t>(RecordKind::kValue);
inline constexpr auto kLastRecordKind = static_cast<uint8_t>(RecordKind::kSwitchGeneration);
// A record that shares bytes of its key has its kind plus this: 13 for a value, 14 for a tombstone.
inline constexpr uint8_t kSharingKinds = 12;
inline constexpr auto kFirstSharingKind = static_cast<uint8_t>(RecordKind::kValue) + kSharingKinds;
inline constexpr auto kLastSharingKind =
    static_cast<uint8_t>(RecordKind::kTombstone) + kSharingKinds;
// No header is longer: checksum, kind, bytes of the key base, two varint32, one varint64, expiry,
// varint32 of the metadata size.
inline constexpr size_t kMaxRecordHeaderSize = 4 + 1 + 1 + 5 + 5 + 10 + 8 + 5;

// Appends the record, without the first `shared` bytes of its key, to `*destination`; returns its
// size in bytes.
// Requires: key, value and metadata are shorter than 1 GiB each. `shared` is at most the key's
// size, and 0 if the record has a cause.
size_t AppendRecord(const RecordView& record, uint64_t checksum_seed, std::string* destination,
                    uint32_t shared = 0);

// Returns the size in bytes of the record that starts at data[0], from its header alone; 0 if
// `data` doesn't hold the header or it makes no sense. kMaxRecordHeaderSize bytes always hold the
// header. The function verifies no checksum, so a damaged header may give any size.
size_t RecordSize(std::string_view data);

// Returns the checksum that this record must have.
// Requires: `record` is whole.
uint32_t RecordChecksum(std::string_view record, uint64_t checksum_seed);
// Returns whether the record has that checksum.
// Requires: `record` is whole.
bool IsIntact(std::string_view record, uint64_t checksum_seed);

enum class ChecksumMode : uint8_t { kVerify, kTrusted };
// Decodes the record at data[0]; views point into `data`. Sets `*shared` to the number of the key's
// first bytes that the key base has; record->key is the rest. Returns the record's size; 0 if it is
// cut short or damaged, and then `*record` and `*shared` may be anything.
size_t DecodeRecord(std::string_view data, uint64_t checksum_seed, ChecksumMode mode,
                    RecordView* record, uint32_t* shared);

}  // namespace varve
