// A value as DUMP answers it and RESTORE takes it: in the form of Redis' RDB files (version 10, of
// Redis 7.0), so that keys go from one server to the other. Pure functions.
//
//   [ type: 1, 0 is a string ][ value ][ RDB version: 2 ][ CRC-64 of all before it
//   (util/redis_format/crc64.h): 8 ]      least significant byte first value: [ length ][ bytes ] |
//   0xC0 [ int8 ] | 0xC1 [ int16 ] | 0xC2 [ int32 ] | 0xC3 [ length of LZF ][ length ][ LZF
//   (util/redis_format/lzf.h) ] length: 00LLLLLL | 01LLLLLL LLLLLLLL | 0x80, 4 bytes | 0x81, 8
//   bytes; most significant byte first
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
