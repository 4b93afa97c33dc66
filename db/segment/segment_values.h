// Value addresses let the offset table of a segment point at values that lie in other files: they
// are offsets behind the segment's own data.
//
// The slots' offsets have 37 bits. The i-th value file that a segment refers to
// (SegmentInfo::value_files) has the i-th window of 64 MiB, counted from the end of the addresses
// downwards: [2^37 - (i + 1) * 2^26, 2^37 - i * 2^26). The segment's data ends below the last
// window. So a point lookup of a separated value is one read, of the value. A value that lies
// behind its file's first 64 MiB, or in a file for which there is no window left, is not addressed:
// the slot leads to the segment's record, and the lookup takes two reads.
//
// Thread-safety: stateless functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "db/format/segment_info.h"
#include "structure/offset_table.h"

namespace varve {

inline constexpr uint64_t kValueWindowSize = uint64_t{1} << 26;
inline constexpr size_t kMaxValueWindows = 1536;  // 96 GiB, which leaves 32 GiB for data

inline size_t ValueWindows(size_t value_files) { return std::min(value_files, kMaxValueWindows); }
// Returns where the data of a segment with so many value files ends at most.
inline uint64_t DataLimit(size_t value_files) {
  return kMaxTableOffset + 1 - ValueWindows(value_files) * kValueWindowSize;
}
inline bool IsAddressable(size_t file_index, uint64_t offset) {
  return file_index < kMaxValueWindows && offset < kValueWindowSize;
}
inline uint64_t ValueAddress(size_t file_index, uint64_t offset) {
  return kMaxTableOffset + 1 - (file_index + 1) * kValueWindowSize + offset;
}

struct AddressedValue {
  size_t file_index;
  uint64_t offset;
};
// Returns whether a slot's offset is the address of a value.
inline bool IsValueAddress(const SegmentInfo& info, uint64_t table_offset) {
  return !info.value_files.empty() && table_offset >= DataLimit(info.value_files.size());
}
inline AddressedValue ValueAt(uint64_t table_offset) {
  return {(kMaxTableOffset - table_offset) / kValueWindowSize, table_offset % kValueWindowSize};
}

}  // namespace varve
