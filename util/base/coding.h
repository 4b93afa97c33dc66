// The encodings of integers and byte strings: this file alone knows how numbers lie on disk and in
// internal keys.
//
//   fixed    16, 32 or 64 bits, least significant byte first, no alignment needed
//   big      32 or 64 bits, most significant byte first, so that comparing bytes compares numbers
//            (inside keys only)
//   varint   LEB128: seven bits a byte, lowest first, the high bit says that another byte follows
//              300  =  0b10_0101100  ->  | 1 0101100 | 0 0000010 |  =  AC 02
//   prefixed | length: varint32 | that many bytes |
//
// Every number has exactly one varint encoding: decoders refuse a longer form of it, so that equal
// values are equal bytes under a checksum and no damaged input is read as something else than it
// was.
//
// Thread-safety: Free functions keep no state; a ByteReader belongs to one thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace varve {

inline constexpr size_t kMaxVarint32Bytes = 5;
inline constexpr size_t kMaxVarint64Bytes = 10;

namespace coding_internal {

inline uint16_t SwapBytes(uint16_t value) { return __builtin_bswap16(value); }
inline uint32_t SwapBytes(uint32_t value) { return __builtin_bswap32(value); }
inline uint64_t SwapBytes(uint64_t value) { return __builtin_bswap64(value); }

// Loads and stores a number in the byte order `Order`; both become one or two machine instructions.
template <std::endian Order, typename T>
inline void Store(char* dst, T value) {
  if constexpr (Order != std::endian::native) value = SwapBytes(value);
  std::memcpy(dst, &value, sizeof(value));
}

template <std::endian Order, typename T>
inline T Load(const char* src) {
  T value;
  std::memcpy(&value, src, sizeof(value));
  if constexpr (Order != std::endian::native) value = SwapBytes(value);
  return value;
}

const char* DecodeLongVarint32(const char* p, const char* limit, uint32_t* value);
const char* DecodeLongVarint64(const char* p, const char* limit, uint64_t* value);

}  // namespace coding_internal

inline void EncodeFixed16(char* dst, uint16_t value) {
  coding_internal::Store<std::endian::little>(dst, value);
}
inline void EncodeFixed32(char* dst, uint32_t value) {
  coding_internal::Store<std::endian::little>(dst, value);
}
inline void EncodeFixed64(char* dst, uint64_t value) {
  coding_internal::Store<std::endian::little>(dst, value);
}
inline void EncodeBigEndian64(char* dst, uint64_t value) {
  coding_internal::Store<std::endian::big>(dst, value);
}

// The caller guarantees that 2, 4 or 8 bytes can be read at `src`.
inline uint16_t DecodeFixed16(const char* src) {
  return coding_internal::Load<std::endian::little, uint16_t>(src);
}
inline uint32_t DecodeFixed32(const char* src) {
  return coding_internal::Load<std::endian::little, uint32_t>(src);
}
inline uint64_t DecodeFixed64(const char* src) {
  return coding_internal::Load<std::endian::little, uint64_t>(src);
}
inline uint32_t DecodeBigEndian32(const char* src) {
  return coding_internal::Load<std::endian::big, uint32_t>(src);
}
inline uint64_t DecodeBigEndian64(const char* src) {
  return coding_internal::Load<std::endian::big, uint64_t>(src);
}

// The first eight bytes of `text` as a number that compares like them; behind the end of a shorter
// one come zeros.
inline uint64_t LeadingWord(std::string_view text) {
  if (text.size() >= 8) [[likely]]
    return DecodeBigEndian64(text.data());
  char padded[8] = {};
  if (!text.empty()) std::memcpy(padded, text.data(), text.size());
  return DecodeBigEndian64(padded);
}

void PutFixed32(std::string* dst, uint32_t value);
void PutFixed64(std::string* dst, uint64_t value);

// Bytes that the varint of `value` takes: 1 to 10.
constexpr size_t VarintLength(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

// Writes the varint at `dst`, which has room for VarintLength(value) bytes; returns the byte after
// it.
inline char* EncodeVarint64(char* dst, uint64_t value) {
  while (value >= 0x80) {
    *dst++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *dst++ = static_cast<char>(value);
  return dst;
}
inline char* EncodeVarint32(char* dst, uint32_t value) { return EncodeVarint64(dst, value); }

void PutVarint32(std::string* dst, uint32_t value);
void PutVarint64(std::string* dst, uint64_t value);

// Appends | length: varint32 | bytes |. `bytes` are shorter than 4 GiB.
void PutLengthPrefixed(std::string* dst, std::string_view bytes);

// Reads the varint in [p, limit) into `*value` and returns the byte after it. Returns nullptr, and
// leaves `*value` alone, if the varint is cut off by `limit`, does not fit the type or is longer
// than it needs to be.
inline const char* DecodeVarint32(const char* p, const char* limit, uint32_t* value) {
  if (p < limit && static_cast<signed char>(*p) >= 0) [[likely]] {
    *value = static_cast<unsigned char>(*p);
    return p + 1;
  }
  return coding_internal::DecodeLongVarint32(p, limit, value);
}
inline const char* DecodeVarint64(const char* p, const char* limit, uint64_t* value) {
  if (p < limit && static_cast<signed char>(*p) >= 0) [[likely]] {
    *value = static_cast<unsigned char>(*p);
    return p + 1;
  }
  return coding_internal::DecodeLongVarint64(p, limit, value);
}

// A byte reader consumes a byte string from its front, for decoders of manifests, blocks and
// footers. Each Read returns false, and consumes nothing, if the input is too short or malformed.
// The views that it hands out point into the input.
class ByteReader {
 public:
  explicit ByteReader(std::string_view input) : input_(input), rest_(input) {}

  bool ReadByte(uint8_t* value);
  bool ReadFixed64(uint64_t* value);
  bool ReadVarint32(uint32_t* value);
  bool ReadVarint64(uint64_t* value);
  bool ReadBytes(size_t length, std::string_view* bytes);
  bool ReadLengthPrefixed(std::string_view* bytes);

  // Returns the bytes that have not been read yet.
  std::string_view rest() const { return rest_; }
  // Returns the number of bytes read so far, which is the place that an error names.
  size_t position() const { return input_.size() - rest_.size(); }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view input_;
  std::string_view rest_;
};

}  // namespace varve
