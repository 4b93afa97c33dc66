// Access to the bits of a byte string, numbered as Redis numbers them: bit 0 is the highest bit of
// the first byte. All bits behind the end of the string are zero.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

bool BitAt(std::string_view bytes, uint64_t bit);

// Sets or clears a bit; zeros fill `*bytes` up to it.
void SetBitAt(std::string* bytes, uint64_t bit, bool value);

// Ones among the bits [first, last], which lie in `bytes`; 0 if first > last.
uint64_t CountOnes(std::string_view bytes, uint64_t first, uint64_t last);

// The first bit with that value among [first, last], which lie in `bytes`; nothing if there is
// none.
std::optional<uint64_t> FindBit(std::string_view bytes, bool value, uint64_t first, uint64_t last);

enum class BitOperation { kAnd, kOr, kXor };

// `*result` becomes `*result` op `operand`. The shorter of the two counts as filled with zeros to
// the length of the longer.
void CombineBits(BitOperation operation, std::string_view operand, std::string* result);

void InvertBits(std::string* bytes);

// An unsigned number of 1 to 64 bits, the highest bit first, that begins at bit `offset`.
uint64_t ReadBits(std::string_view bytes, uint64_t offset, unsigned bits);
// Writes the lowest `bits` bits of `value`. Requires: the place lies in `bytes`.
void WriteBits(std::string* bytes, uint64_t offset, unsigned bits, uint64_t value);

}  // namespace varve
