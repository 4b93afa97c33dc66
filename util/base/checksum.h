// The checksum under which every byte on disk lies: the low 32 bits of seeded XXH3-64.
//
// It finds what hardware and crashes do to data: flipped bits, torn, lost and misplaced writes. A
// damaged piece passes with probability 2^-32, one in 4.3 billion, whatever the damage looks like;
// unlike a CRC there is no class of short bursts that it finds for certain, and in exchange it runs
// at memory speed (over 10 GB/s). The seed says what the bytes are and where they belong, such as
// the file's epoch and the block's offset: an intact block that lies in the wrong place or was left
// behind by a recycled file fails as surely as a damaged one. It is no defence against somebody who
// writes files on purpose to deceive. Part of the file formats: it never changes. Thread-safety: a
// pure function.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace varve {

inline uint32_t Checksum(std::string_view data, uint64_t seed) {
  return static_cast<uint32_t>(XXH3_64bits_withSeed(data.data(), data.size(), seed));
}

}  // namespace varve
