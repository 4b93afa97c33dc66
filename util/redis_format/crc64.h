// The CRC-64 of Redis' RDB files: polynomial 0xad93d23594c935a9 ("Jones"), reflected, initial value
// and final XOR 0. Eight bytes a step, with a table for each ("slicing by 8": Kounavis and Berry,
// 2005).
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <cstdint>
#include <string_view>

namespace varve {

// The CRC of what `crc` was computed of, followed by `bytes`; begin with 0.
uint64_t Crc64(uint64_t crc, std::string_view bytes);

}  // namespace varve
