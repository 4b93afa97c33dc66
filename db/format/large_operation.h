// A large operation is an operation of the log whose value is large, written so that it can be read
// and verified alone, wherever it lies. Segments point to it instead of holding the value once
// more, and value files (db/values/value_file_format.h) hold copies of it.
//
//      0   1  RecordKind (kValue) | RecordFlags | kSeparatedValue
//      1   v  varint32 key size, varint32 value size
//      .   8  sequence                                             } the seal
//      .   4  checksum: of the sequence, seeded with the body hash }
//      .   8  expiry in ms since the epoch           (kHasExpiry)
//      .   v  varint32 size and bytes of metadata    (kHasMetadata)
//      .      key (tree key), value
//
// The body hash is the XXH3-64 of what stands behind the seal, seeded with that of what stands
// before it. It needs no sequence, so a writer computes it before it takes the commit lock. The
// batch's checksum is computed from the body hash too, so that no byte is hashed twice. The
// checksum does not depend on where the operation lies: a reader that follows a handle compares key
// and sequence, which no two operations share.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "type/record.h"
#include "varve/types.h"

namespace varve {

// A put of a value of this size or more is a large operation in the log; a smaller
// EngineOptions::value_separation_size counts as this. For a smaller value a handle and a second
// read would cost more than they save. Readers go by the flag kSeparatedValue and not by the size.
inline constexpr size_t kSmallestLargeValue = 1024;
inline constexpr size_t kLargeSealSize = 12;
// No header is longer: kind, two varint32, the seal, expiry, varint32 of the metadata size.
inline constexpr size_t kMaxLargeHeaderSize = 1 + 5 + 5 + kLargeSealSize + 8 + 5;

// Appends a record with its sequence as a whole large operation; LargeOperationSizeOf returns the
// size of that.
void AppendLargeOperation(const RecordView& record, std::string* destination);
size_t LargeOperationSizeOf(const RecordView& record);

// Returns the body hash of a whole large operation.
uint64_t LargeBodyHash(std::string_view operation, size_t seal_offset);
// Writes the seal of the operation whose first byte is at `operation`.
void SealLargeOperation(char* operation, size_t seal_offset, SequenceNumber sequence,
                        uint64_t body_hash);
// Returns whether the checksum in the seal is right. Stores the operation's sequence in
// `*sequence`.
bool LargeSealFits(std::string_view operation, size_t seal_offset, uint64_t body_hash,
                   SequenceNumber* sequence);

// Returns the size of the large operation at data[0], from its header alone; 0 if `data` doesn't
// hold that or it makes no sense. kMaxLargeHeaderSize bytes always hold the header. The function
// verifies no checksum.
uint64_t LargeOperationSize(std::string_view data);
// Decodes the large operation at data[0], which the caller has verified before. Returns its size; 0
// if it is cut short or makes no sense.
size_t ParseLargeOperation(std::string_view data, RecordView* record);
// Decodes and verifies the large operation at data[0]. Returns its size; 0 if it is cut short or
// damaged.
size_t DecodeLargeOperation(std::string_view data, RecordView* record);

}  // namespace varve
