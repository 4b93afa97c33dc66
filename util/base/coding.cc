#include "util/base/coding.h"

namespace varve {
namespace {

template <typename T>
const char* DecodeLongVarint(const char* p, const char* limit, T* value) {
  constexpr int kBits = sizeof(T) * 8;
  T result = 0;
  for (int shift = 0; shift < kBits && p < limit; shift += 7) {
    const T byte = static_cast<unsigned char>(*p++);
    const T payload = byte & 0x7f;
    // Bits beyond the type.
    if (shift + 7 > kBits && (payload >> (kBits - shift)) != 0) return nullptr;
    result |= payload << shift;
    if (byte < 0x80) {
      if (byte == 0 && shift != 0) return nullptr;  // a shorter form exists
      *value = result;
      return p;
    }
  }
  return nullptr;
}

// Extends `dst` by `length` bytes and returns where they begin.
char* Extend(std::string* dst, size_t length) {
  const size_t size = dst->size();
  dst->resize(size + length);
  return dst->data() + size;
}

}  // namespace

namespace coding_internal {

const char* DecodeLongVarint32(const char* p, const char* limit, uint32_t* value) {
  return DecodeLongVarint(p, limit, value);
}

const char* DecodeLongVarint64(const char* p, const char* limit, uint64_t* value) {
  return DecodeLongVarint(p, limit, value);
}

}  // namespace coding_internal

void PutFixed32(std::string* dst, uint32_t value) {
  EncodeFixed32(Extend(dst, sizeof(value)), value);
}
void PutFixed64(std::string* dst, uint64_t value) {
  EncodeFixed64(Extend(dst, sizeof(value)), value);
}

void PutVarint64(std::string* dst, uint64_t value) {
  char buffer[kMaxVarint64Bytes];
  dst->append(buffer, static_cast<size_t>(EncodeVarint64(buffer, value) - buffer));
}

void PutVarint32(std::string* dst, uint32_t value) { PutVarint64(dst, value); }

void PutLengthPrefixed(std::string* dst, std::string_view bytes) {
  PutVarint32(dst, static_cast<uint32_t>(bytes.size()));
  dst->append(bytes);
}

bool ByteReader::ReadByte(uint8_t* value) {
  if (rest_.empty()) return false;
  *value = static_cast<uint8_t>(rest_.front());
  rest_.remove_prefix(1);
  return true;
}

bool ByteReader::ReadFixed64(uint64_t* value) {
  std::string_view bytes;
  if (!ReadBytes(sizeof(*value), &bytes)) return false;
  *value = DecodeFixed64(bytes.data());
  return true;
}

bool ByteReader::ReadVarint32(uint32_t* value) {
  const char* next = DecodeVarint32(rest_.data(), rest_.data() + rest_.size(), value);
  if (next == nullptr) return false;
  rest_.remove_prefix(static_cast<size_t>(next - rest_.data()));
  return true;
}

bool ByteReader::ReadVarint64(uint64_t* value) {
  const char* next = DecodeVarint64(rest_.data(), rest_.data() + rest_.size(), value);
  if (next == nullptr) return false;
  rest_.remove_prefix(static_cast<size_t>(next - rest_.data()));
  return true;
}

bool ByteReader::ReadBytes(size_t length, std::string_view* bytes) {
  if (rest_.size() < length) return false;
  *bytes = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

bool ByteReader::ReadLengthPrefixed(std::string_view* bytes) {
  const std::string_view before = rest_;
  uint32_t length = 0;
  if (ReadVarint32(&length) && ReadBytes(length, bytes)) return true;
  rest_ = before;
  return false;
}

}  // namespace varve
