// The numbers of BITFIELD, signed ones of 1 to 64 bits and unsigned ones of 1 to 63, at any bit of
// a byte string, and the treatment of a number that does not fit.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace varve {

struct BitFieldType {
  bool is_signed = false;
  unsigned bits = 0;

  int64_t Min() const;
  int64_t Max() const;
};

// "i5" or "u63", in lower case.
std::optional<BitFieldType> ParseBitFieldType(std::string_view text);

// The first bit of a field: "100", or "#3" for three fields of `bits` further on. Nothing if it is
// no number or its first bit isn't in the largest value.
std::optional<uint64_t> ParseBitOffset(std::string_view text);
std::optional<uint64_t> ParseFieldOffset(std::string_view text, unsigned bits);

enum class BitFieldOverflow { kWrap, kSaturate, kFail };

int64_t ReadField(std::string_view bytes, BitFieldType type, uint64_t offset);

// The number that is stored for `value`; nothing when it doesn't fit and `overflow` is kFail. An
// unsigned field takes a negative value for the large one with the same 64 bits.
std::optional<int64_t> FitValue(BitFieldType type, int64_t value, BitFieldOverflow overflow);
// Does the same for the sum of `number`, which is in the range of the field, and `increment`.
std::optional<int64_t> FitSum(BitFieldType type, int64_t number, int64_t increment,
                              BitFieldOverflow overflow);

}  // namespace varve
