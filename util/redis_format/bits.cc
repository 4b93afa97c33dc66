#include "util/redis_format/bits.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace varve {
namespace {

// The bits [from, to] of one byte, 0 being the highest.
constexpr uint8_t Mask(unsigned from, unsigned to) {
  return static_cast<uint8_t>((0xFFu >> from) & (0xFFu << (7 - to)));
}

uint8_t ByteAt(std::string_view bytes, uint64_t index) {
  return static_cast<uint8_t>(bytes[index]);
}

uint64_t LoadWord(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t CountOnesOfBytes(std::string_view bytes) {
  uint64_t ones = 0;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8)
    ones += static_cast<uint64_t>(std::popcount(LoadWord(bytes.data() + i)));
  for (; i < bytes.size(); ++i) ones += static_cast<uint64_t>(std::popcount(ByteAt(bytes, i)));
  return ones;
}

template <typename Combine>
void CombineWith(std::string_view operand, std::string* result, Combine combine) {
  char* const out = result->data();
  size_t i = 0;
  for (; i + 8 <= operand.size(); i += 8) {
    const uint64_t word = combine(LoadWord(out + i), LoadWord(operand.data() + i));
    std::memcpy(out + i, &word, sizeof(word));
  }
  for (; i < operand.size(); ++i) {
    out[i] =
        static_cast<char>(combine(static_cast<uint8_t>(out[i]), static_cast<uint8_t>(operand[i])));
  }
}

}  // namespace

bool BitAt(std::string_view bytes, uint64_t bit) {
  return bit / 8 < bytes.size() && (ByteAt(bytes, bit / 8) & Mask(bit % 8, bit % 8)) != 0;
}

void SetBitAt(std::string* bytes, uint64_t bit, bool value) {
  if (bit / 8 >= bytes->size()) bytes->resize(bit / 8 + 1, '\0');
  const uint8_t mask = Mask(bit % 8, bit % 8);
  const uint8_t old = ByteAt(*bytes, bit / 8);
  (*bytes)[bit / 8] = static_cast<char>(value ? old | mask : old & ~mask);
}

uint64_t CountOnes(std::string_view bytes, uint64_t first, uint64_t last) {
  if (first > last) return 0;
  const uint64_t first_byte = first / 8;
  const uint64_t last_byte = last / 8;
  uint64_t ones = CountOnesOfBytes(bytes.substr(first_byte, last_byte - first_byte + 1));
  // What was counted of the outer bytes beyond the range.
  const uint8_t before = ByteAt(bytes, first_byte) & static_cast<uint8_t>(~Mask(first % 8, 7));
  const uint8_t behind = ByteAt(bytes, last_byte) & static_cast<uint8_t>(~Mask(0, last % 8));
  ones -=
      static_cast<uint64_t>(std::popcount(before)) + static_cast<uint64_t>(std::popcount(behind));
  return ones;
}

std::optional<uint64_t> FindBit(std::string_view bytes, bool value, uint64_t first, uint64_t last) {
  if (first > last) return std::nullopt;
  const uint8_t flip = value ? 0 : 0xFF;  // makes it a search for a one
  const uint64_t skipped = value ? 0 : UINT64_MAX;
  const uint64_t last_byte = last / 8;
  for (uint64_t i = first / 8; i <= last_byte; ++i) {
    while (i + 8 <= last_byte && i > first / 8 && LoadWord(bytes.data() + i) == skipped) i += 8;
    uint8_t byte = ByteAt(bytes, i) ^ flip;
    if (i == first / 8) byte &= Mask(first % 8, 7);
    if (i == last_byte) byte &= Mask(0, last % 8);
    if (byte != 0) return i * 8 + static_cast<uint64_t>(std::countl_zero(byte));
  }
  return std::nullopt;
}

void CombineBits(BitOperation operation, std::string_view operand, std::string* result) {
  if (result->size() < operand.size()) result->resize(operand.size(), '\0');
  switch (operation) {
    case BitOperation::kAnd:
      CombineWith(operand, result, [](uint64_t a, uint64_t b) { return a & b; });
      std::fill(result->begin() + static_cast<std::ptrdiff_t>(operand.size()), result->end(), '\0');
      break;
    case BitOperation::kOr:
      CombineWith(operand, result, [](uint64_t a, uint64_t b) { return a | b; });
      break;
    case BitOperation::kXor:
      CombineWith(operand, result, [](uint64_t a, uint64_t b) { return a ^ b; });
      break;
  }
}

void InvertBits(std::string* bytes) {
  for (char& byte : *bytes) byte = static_cast<char>(~byte);
}

uint64_t ReadBits(std::string_view bytes, uint64_t offset, unsigned bits) {
  uint64_t value = 0;
  while (bits > 0) {
    const unsigned from = offset % 8;
    const unsigned taken = std::min(8 - from, bits);
    const uint8_t byte = offset / 8 < bytes.size() ? ByteAt(bytes, offset / 8) : 0;
    value = (value << taken) | ((byte & Mask(from, from + taken - 1)) >> (8 - from - taken));
    offset += taken;
    bits -= taken;
  }
  return value;
}

void WriteBits(std::string* bytes, uint64_t offset, unsigned bits, uint64_t value) {
  while (bits > 0) {
    const unsigned from = offset % 8;
    const unsigned taken = std::min(8 - from, bits);
    bits -= taken;
    const uint8_t mask = Mask(from, from + taken - 1);
    const uint8_t part = static_cast<uint8_t>((value >> bits) << (8 - from - taken)) & mask;
    const uint8_t old = ByteAt(*bytes, offset / 8);
    (*bytes)[offset / 8] = static_cast<char>((old & ~mask) | part);
    offset += taken;
  }
}

}  // namespace varve
