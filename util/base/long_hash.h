// The long hash is XXH3 in its 64-bit form for kilobytes, by the widest instructions that the
// processor has: programs are built for any processor of their kind, and wide registers hash twice
// as many bytes at a time. Its values are those of util/base/hash.h and util/base/checksum.h.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace varve {

// From this size on the long hash gains more than its call costs.
inline constexpr size_t kLongHashSize = 1024;

uint64_t LongHash(std::string_view bytes, uint64_t seed);

// The form for processors with AVX2, which is compiled by itself (long_hash_avx2.cc).
// Requires: the processor has AVX2.
uint64_t LongHashByAvx2(const char* bytes, size_t size, uint64_t seed);

}  // namespace varve
