// The log's bytes (the field's write-ahead log, WAL). Numbers are little-endian; checksums are XXH3-64's low 32 bits.
//
// File `NNNNNN.log`: a header page, then blocks. The file is zero-filled (or recycled) before its number is taken, so that
// writing a block changes no metadata.
//
//   header page, 4096 bytes, the rest zero:
//      0   8  magic "VARVELOG"
//      8   4  format version (1)
//     12   4  checksum of bytes 0..12 and 16..32
//     16   8  epoch: the file's number; blocks of an earlier life carry another
//     24   8  store id
//
//   block: what one write put into the file. Starts at a multiple of 8; after a sync at a multiple of 4096 (the space before is
//   zero), so that a sector which was acknowledged is never written again.
//      0   4  checksum of bytes 4..40
//      4   4  payload size in bytes, without padding
//      8   8  epoch
//     16   8  sequence of the first operation
//     24   8  sequence of the last operation
//     32   8  durable mark: durable_sequence when this block was issued
//     40   .  batch records, back to back
//
//   batch record: one WriteBatch, whole or not at all.
//      0   4  checksum of bytes 4.. to the record's end
//      4   4  size of the operations in bytes
//      8   8  sequence of the first operation; operation i has sequence + i
//     16   4  number of operations
//     20   .  operations, back to back
//
//   operation:
//      0   1  RecordKind | RecordFlags
//      1   v  varint32 key size, varint32 value size
//      .   8  expiry in ms since the epoch           (kHasExpiry)
//      .   v  varint32 size and bytes of metadata    (kHasMetadata)
//      .      key (tree key), value
//
// Recovery reads files in order of number and blocks in order of offset, each continuing the sequence of the one before.
// Torn is not corrupt: where a block or batch is damaged or ends, and `next` is the sequence expected there,
//   - a later file that begins with `next` says that an earlier recovery cut here: go on there;
//   - any later block of this or a later file whose durable mark is >= `next` says that `next` had been acknowledged: corruption;
//   - so does a clean end recorded in the manifest at or after it;
//   - otherwise it is a tear: cut here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve {

inline constexpr char kLogMagic[8] = {'V', 'A', 'R', 'V', 'E', 'L', 'O', 'G'};
inline constexpr uint32_t kLogFormatVersion = 1;
inline constexpr size_t kLogPageSize = 4096;
inline constexpr size_t kLogBlockHeaderSize = 40;
inline constexpr size_t kLogBlockAlignment = 8;
inline constexpr size_t kBatchHeaderSize = 20;

}  // namespace varve
