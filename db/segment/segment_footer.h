// The segment footer is the last bytes of a segment. It says where the segment's parts lie and how
// much they hold.
//
//   footer = [ segment number: 8 ][ data size: 8 ][ block size: 8 ]
//            [ table offset: 8 ][ table pages: 8 ]
//            [ fences offset: 8 ][ fences size: 8 ][ fences: 8 ]
//            [ range tombstones offset: 8 ][ their size: 8 ]
//            [ records: 8 ][ point tombstones: 8 ][ range tombstones: 8 ]
//            [ smallest sequence: 8 ][ largest sequence: 8 ]
//            [ largest is exclusive: 1 ]
//            [ smallest key: length-prefixed ][ largest key: length-prefixed ]
//            [ overflow entries: varint64 ][ each: hash: 8, offset: 8, length class: 1 ]
//            [ value files: varint64 ][ each: number: varint64, bytes referred to: varint64 ]
//                                                    from version 2 on; version 1 has none
//            [ size of the dictionary: varint64 ]            from version 3 on
//            [ some value is compressed: 1 ][ key base: length-prefixed ]    from version 4 on
//   tail   = [ footer offset: 8 ][ footer size: 4 ][ format version: 4 ][ footer checksum: 4 ]
//            [ checksum of the tail's 20 bytes before: 4 ][ magic: 8 ]
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/range_tombstone.h"
#include "db/format/segment_info.h"
#include "structure/offset_table.h"
#include "util/os/file_system.h"

namespace varve {

struct SegmentFooter {
  SegmentInfo info;
  uint64_t data_size = 0;  // bytes of records, without the zeros behind them
  uint32_t block_size = 0;
  uint64_t table_offset = 0;
  uint32_t table_pages = 0;
  uint64_t fences_offset = 0;
  uint64_t fences_size = 0;
  uint32_t fence_count = 0;
  uint64_t range_tombstones_offset = 0;
  uint64_t range_tombstones_size = 0;
  std::vector<OffsetTableOverflow> overflow;
  bool holds_compressed = false;  // some value, here or in a value file, is compressed
  uint64_t dictionary_size = 0;   // of the part behind the fences; 0: there is none
  // Records share these bytes of their keys (db/format/key_base.h); empty: all of them hold whole
  // keys.
  std::string key_base;

  uint64_t dictionary_offset() const { return fences_offset + fences_size; }
  // Returns the bytes of the table and the fences, which follow each other.
  uint64_t index_size() const { return fences_offset + fences_size - table_offset; }
};

// Appends footer and tail for a file whose bytes so far end where the range tombstones do.
void AppendSegmentFooter(const SegmentFooter& footer, std::string* destination);

// Reads and checks footer and tail of segment `number` with 1 or 2 reads. `*reads` (if not null)
// counts them. Returns DataLoss if they are damaged or don't fit the file, and FailedPrecondition
// if this program does not know the format version.
[[nodiscard]] absl::StatusOr<SegmentFooter> ReadSegmentFooter(const File& file, uint64_t number,
                                                              uint64_t file_size, uint64_t* reads);

// Reads and checks the range tombstones of a segment with one read (none if there are none).
[[nodiscard]] absl::StatusOr<std::vector<RangeTombstone>> ReadSegmentRangeTombstones(
    const File& file, const SegmentFooter& footer);

}  // namespace varve
