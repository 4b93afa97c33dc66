// The segment format is what stands in a segment's file (the field's SSTable), `NNNNNN.seg`: one
// sorted layer, written once, never changed. Numbers are little-endian; checksums are XXH3-64's low
// 32 bits, seeded with the segment's number.
//
//   [ data: records of db/format/record_format.h, back to back, from byte 0              ]
//   [ zeros to a multiple of 4096                                                        ]
//   [ offset table: pages of structure/offset_table.h, 4096 bytes each                   ]
//   [ fences: one sparse key per block of data; db/segment/segment_fences.h              ]
//   [ dictionary of compressed values; db/segment/segment_dictionary.h; 0 bytes if there
//     is none                                                                            ]
//   [ range tombstones: length-prefixed begin and end, fixed64 sequence; one checksum: 4;
//     0 bytes if there are none                                                          ]
//   [ footer: where each part lies, counts, key and sequence range;
//     db/segment/segment_footer.h                                                        ]
//   [ tail, 32 bytes: footer offset and size, format version, checksums, magic "VARVESEG" ]
//
// A block is a unit of reading and not of storage: block k of the data is the records that begin in
// the k-th `block_size` bytes. The last of them may reach beyond these bytes, and behind a large
// record there may be blocks in which no record begins.
//
// Thread-safety: constants and stateless functions.
#pragma once

#include <cstdint>

namespace varve {

inline constexpr char kSegmentMagic[8] = {'V', 'A', 'R', 'V', 'E', 'S', 'E', 'G'};
inline constexpr uint32_t kSegmentFormatVersion = 4;
// The builder writes these versions for segments of whole keys: of plain values that hold all of
// them, of other plain values, and with compressed ones.
inline constexpr uint32_t kSegmentWithoutValues = 1;
inline constexpr uint32_t kSegmentOfPlainValues = 2;
inline constexpr uint32_t kSegmentOfWholeKeys = 3;
inline constexpr uint64_t kSegmentPageSize = 4096;
inline constexpr uint64_t kSegmentTailSize = 32;
inline constexpr uint32_t kMinBlockSize = 4096;  // powers of two
inline constexpr uint32_t kMaxBlockSize = 65536;

// The seed of a checksum depends on the part that it covers, so that no part passes for another.
// The seed of a record's checksum is the segment's number alone.
enum class SegmentPart : uint8_t {
  kFences = 1,
  kRangeTombstones = 2,
  kFooter = 3,
  kTail = 4,
  kDictionary = 5
};
inline uint64_t SegmentPartSeed(uint64_t number, SegmentPart part, uint64_t index = 0) {
  return (number + 1) * 0x9e3779b97f4a7c15u ^ (index << 8 | static_cast<uint64_t>(part));
}

}  // namespace varve
