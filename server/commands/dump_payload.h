// The form in which DUMP answers a value and RESTORE takes it: that of RDB files of Redis (version
// 10, of Redis 7.0), so that keys can move from one server to the other.
//
//   payload: [ type: 1 byte, 0 is a string ][ value ]
//            [ RDB version: 2 ][ CRC-64 of all before it: 8 ]         least significant byte first
//   value:   [ length ][ bytes ] | 0xC0 [ int8 ] | 0xC1 [ int16 ] | 0xC2 [ int32 ]
//            | 0xC3 [ length of LZF ][ length ][ LZF ]
//   length:  00LLLLLL | 01LLLLLL LLLLLLLL | 0x80, 4 bytes | 0x81, 8 bytes
//                                                                      most significant byte first
//
// util/redis_format/crc64.h and util/redis_format/lzf.h have the checksum and the compression.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

// Small integers as such, all else as it is: nothing is compressed.
std::string EncodeDumpPayload(std::string_view value);

// The checksum is right, and the version one that can be read (up to 12, of Redis 7.4).
[[nodiscard]] bool IsDumpPayload(std::string_view payload);

// The value in a payload that IsDumpPayload() has accepted. Nothing: it is no string, or one of
// more than `max_value_bytes` bytes.
[[nodiscard]] std::optional<std::string> DecodeDumpPayload(std::string_view payload,
                                                           size_t max_value_bytes);

}  // namespace varve
