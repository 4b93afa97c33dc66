// A compressed value is what stands in the place of the value in a record of a segment, or in a
// large operation of a value file, whose flags have kCompressed:
//
//   v  size of the plain value * 4 + codec (varint32)
//   .  the value, compressed
//
//   codecs  1 an LZ4 block
//           2 a zstd frame without its magic
//           3 the same, with the dictionary of the segment (db/segment/segment_dictionary.h)
//
// The checksum of the record or operation covers these bytes. A reader that decompresses them gives
// room for the plain size and no more, so no value takes more memory than its header says; and no
// header is taken for one that says more than the codec can make of the bytes behind it.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "type/record.h"
#include "util/base/coding.h"
#include "varve/options.h"

namespace varve {

enum class ValueCodec : uint8_t { kLz4 = 1, kZstd = 2, kZstdWithDictionary = 3 };

struct CompressedValue {
  ValueCodec codec = ValueCodec::kLz4;
  uint32_t plain_size = 0;
  std::string_view payload;
};

// No codec makes more than this of a byte: a length of LZ4 grows by 255 with each, and a block of
// zstd has 4 bytes at least and 128 KiB of plain value at most.
inline constexpr uint64_t kMostFromByteOfLz4 = 255;
inline constexpr uint64_t kMostFromByteOfZstd = 32768;

inline bool IsCompressed(const RecordView& record) { return (record.flags & kCompressed) != 0; }

// Returns false if `bytes` begin with no header of a compressed value.
inline bool ParseCompressedValue(std::string_view bytes, CompressedValue* value) {
  uint32_t header = 0;
  const char* const limit = bytes.data() + bytes.size();
  const char* const at = DecodeVarint32(bytes.data(), limit, &header);
  if (at == nullptr || (header & 3) == 0 || header >> 2 > kMaxValueSize) return false;
  value->codec = static_cast<ValueCodec>(header & 3);
  value->plain_size = header >> 2;
  value->payload = {at, static_cast<size_t>(limit - at)};
  const uint64_t most = value->codec == ValueCodec::kLz4 ? kMostFromByteOfLz4 : kMostFromByteOfZstd;
  return value->plain_size <= value->payload.size() * most;
}

// Returns the size of the plain value; 0 if the header makes no sense.
inline uint32_t PlainSizeOf(std::string_view compressed) {
  CompressedValue value;
  return ParseCompressedValue(compressed, &value) ? value.plain_size : 0;
}

}  // namespace varve
