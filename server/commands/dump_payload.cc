#include "server/commands/dump_payload.h"

#include <cstdint>

#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/redis_format/crc64.h"
#include "util/redis_format/lzf.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr char kStringType = 0;
constexpr uint16_t kVersion = 10;
constexpr uint16_t kNewestVersion = 12;
constexpr size_t kFooterSize = 2 + 8;
constexpr size_t kLongestInteger = 11;  // an int32 as text

enum Encoding : uint8_t { kInt8 = 0, kInt16 = 1, kInt32 = 2, kLzf = 3 };

void AppendLength(uint64_t length, std::string* out) {
  if (length < 1u << 6) {
    out->push_back(static_cast<char>(length));
  } else if (length < 1u << 14) {
    out->push_back(static_cast<char>(0x40 | length >> 8));
    out->push_back(static_cast<char>(length));
  } else {
    out->push_back(static_cast<char>(0x80));
    for (int shift = 24; shift >= 0; shift -= 8) out->push_back(static_cast<char>(length >> shift));
  }
}

// False: the value is not an integer that has a short form.
bool AppendInteger(std::string_view value, std::string* out) {
  int64_t number = 0;
  if (value.size() > kLongestInteger || !ParseRespInteger(value, &number)) return false;
  if (number != static_cast<int32_t>(number) || fmt::to_string(number) != value) return false;
  const Encoding encoding = number == static_cast<int8_t>(number)    ? kInt8
                            : number == static_cast<int16_t>(number) ? kInt16
                                                                     : kInt32;
  out->push_back(static_cast<char>(0xC0 | encoding));
  for (int i = 0; i < 1 << encoding; ++i) out->push_back(static_cast<char>(number >> (8 * i)));
  return true;
}

// Takes bytes off the front of a payload.
class PayloadReader {
 public:
  explicit PayloadReader(std::string_view bytes) : rest_(bytes) {}

  // Empty where there are not so many; ok() then says so.
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  uint8_t TakeByte() {
    const std::string_view byte = Take(1);
    return byte.empty() ? 0 : static_cast<uint8_t>(byte[0]);
  }
  // `*encoding`: the length is the number of an encoding. Null: it may not be.
  uint64_t TakeLength(bool* encoding = nullptr) {
    const uint8_t first = TakeByte();
    switch (first >> 6) {
      case 0:
        return first;
      case 1:
        return uint64_t{first & 0x3Fu} << 8 | TakeByte();
      case 2:
        if (first == 0x80) return TakeBigEndian(4);
        if (first == 0x81) return TakeBigEndian(8);
        break;
      default:
        if (encoding != nullptr) {
          *encoding = true;
          return first & 0x3Fu;
        }
    }
    ok_ = false;
    return 0;
  }
  bool ok() const { return ok_; }

 private:
  uint64_t TakeBigEndian(size_t size) {
    uint64_t number = 0;
    for (const char byte : Take(size)) number = number << 8 | static_cast<uint8_t>(byte);
    return number;
  }

  std::string_view rest_;
  bool ok_ = true;
};

std::optional<std::string> DecodeEncoded(uint64_t encoding, size_t max_value_bytes,
                                         PayloadReader* reader) {
  if (encoding > kLzf) return std::nullopt;
  if (encoding == kLzf) {
    const uint64_t compressed = reader->TakeLength();
    const uint64_t size = reader->TakeLength();
    const std::string_view bytes = reader->Take(compressed);
    std::string value;
    if (!reader->ok() || size > max_value_bytes || !DecompressLzf(bytes, size, &value))
      return std::nullopt;
    return value;
  }
  const std::string_view bytes = reader->Take(size_t{1} << encoding);
  if (!reader->ok()) return std::nullopt;
  const int32_t number = encoding == kInt8    ? static_cast<int8_t>(bytes[0])
                         : encoding == kInt16 ? static_cast<int16_t>(DecodeFixed16(bytes.data()))
                                              : static_cast<int32_t>(DecodeFixed32(bytes.data()));
  return fmt::to_string(number);
}

}  // namespace

std::string EncodeDumpPayload(std::string_view value) {
  std::string payload(1, kStringType);
  if (!AppendInteger(value, &payload)) {
    AppendLength(value.size(), &payload);
    payload.append(value);
  }
  payload.push_back(static_cast<char>(kVersion));
  payload.push_back(static_cast<char>(kVersion >> 8));
  const uint64_t crc = Crc64(0, payload);
  for (int shift = 0; shift < 64; shift += 8) payload.push_back(static_cast<char>(crc >> shift));
  return payload;
}

bool IsDumpPayload(std::string_view payload) {
  if (payload.size() < kFooterSize) return false;
  const std::string_view footer = payload.substr(payload.size() - kFooterSize);
  return DecodeFixed16(footer.data()) <= kNewestVersion &&
         DecodeFixed64(footer.data() + 2) == Crc64(0, payload.substr(0, payload.size() - 8));
}

std::optional<std::string> DecodeDumpPayload(std::string_view payload, size_t max_value_bytes) {
  payload.remove_suffix(kFooterSize);
  PayloadReader reader(payload);
  const std::string_view type = reader.Take(1);
  if (!reader.ok() || type[0] != kStringType) return std::nullopt;
  bool encoding = false;
  const uint64_t length = reader.TakeLength(&encoding);
  if (encoding) return DecodeEncoded(length, max_value_bytes, &reader);
  const std::string_view bytes = reader.Take(length);
  if (!reader.ok() || length > max_value_bytes) return std::nullopt;
  return std::string(bytes);
}

}  // namespace varve
