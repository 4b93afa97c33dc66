#include "util/redis_format/rdb_reader.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "util/base/coding.h"
#include "util/base/status.h"
#include "util/redis_format/crc64.h"
#include "util/redis_format/lzf.h"

namespace varve {
namespace {

constexpr uint8_t kStringType = 0;
constexpr uint64_t kLongestString = uint64_t{512} << 20;
constexpr size_t kHeaderSize = 9;
constexpr std::string_view kRedisMagic = "REDIS", kValkeyMagic = "VALKEY";
constexpr int kNewestRedisVersion = 15;
constexpr int kValkeyVersion = 80;  // the only one with that magic

enum Opcode : uint8_t {
  kKeyMetadata = 0xF3,  // kImportedSlot in Valkey
  kSlotSizes = 0xF4,
  kFunction = 0xF5,
  kModuleData = 0xF7,
  kIdle = 0xF8,
  kFrequency = 0xF9,
  kAbout = 0xFA,
  kTableSizes = 0xFB,
  kExpiryMs = 0xFC,
  kExpirySeconds = 0xFD,
  kDatabase = 0xFE,
  kEnd = 0xFF,
};

}  // namespace

void RdbReader::Settle() {
  crc_ = Crc64(crc_, ahead_.substr(0, taken_));
  input_->Consume(taken_);
  ahead_ = {};
  taken_ = 0;
}

absl::Status RdbReader::Damaged(std::string_view what) {
  Settle();
  return input_->Damaged(what);
}

absl::StatusOr<std::string_view> RdbReader::Read(size_t bytes) {
  if (ahead_.size() - taken_ < bytes) {
    Settle();
    VARVE_ASSIGN_OR_RETURN(ahead_, input_->Peek(bytes));
    if (ahead_.size() < bytes) return Damaged("RDB: the file ends too early");
  }
  const std::string_view read = ahead_.substr(taken_, bytes);
  taken_ += bytes;
  return read;
}

absl::StatusOr<uint8_t> RdbReader::ReadByte() {
  VARVE_ASSIGN_OR_RETURN(const std::string_view byte, Read(1));
  return static_cast<uint8_t>(byte[0]);
}

absl::StatusOr<RdbReader::Length> RdbReader::ReadLength() {
  VARVE_ASSIGN_OR_RETURN(const uint8_t first, ReadByte());
  if (first >> 6 == 0) return Length{first, false};
  if (first >> 6 == 3) return Length{first & 0x3Fu, true};
  if (first >> 6 == 1) {
    VARVE_ASSIGN_OR_RETURN(const uint8_t second, ReadByte());
    return Length{(first & 0x3Fu) << 8 | second, false};
  }
  if (first != 0x80 && first != 0x81) return Damaged("RDB: no length has this form");
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(first == 0x80 ? 4 : 8));
  return Length{first == 0x80 ? DecodeBigEndian32(bytes.data()) : DecodeBigEndian64(bytes.data()),
                false};
}

absl::StatusOr<uint64_t> RdbReader::ReadCount() {
  VARVE_ASSIGN_OR_RETURN(const Length length, ReadLength());
  if (length.is_encoding) return Damaged("RDB: a length is expected here");
  return length.value;
}

absl::Status RdbReader::ReadString(std::string* out) {
  VARVE_ASSIGN_OR_RETURN(const Length length, ReadLength());
  if (!length.is_encoding) {
    if (length.value > kLongestString) return Damaged("RDB: a string of more than 512 MiB");
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(length.value));
    out->assign(bytes);
    return absl::OkStatus();
  }
  if (length.value == 3) return ReadCompressed(out);
  if (length.value > 3) return Damaged("RDB: no string has this encoding");
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(size_t{1} << length.value));
  const int32_t number = length.value == 0   ? static_cast<int8_t>(bytes[0])
                         : length.value == 1 ? static_cast<int16_t>(DecodeFixed16(bytes.data()))
                                             : static_cast<int32_t>(DecodeFixed32(bytes.data()));
  *out = fmt::to_string(number);
  return absl::OkStatus();
}

absl::Status RdbReader::ReadCompressed(std::string* out) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t compressed, ReadCount());
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, ReadCount());
  if (compressed > kLongestString || size > kLongestString)
    return Damaged("RDB: a string of more than 512 MiB");
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(compressed));
  if (!DecompressLzf(bytes, size, out))
    return Damaged("RDB: a compressed string can't be decompressed");
  return absl::OkStatus();
}

absl::Status RdbReader::Skip(uint64_t bytes) {
  constexpr uint64_t kPiece = 64u << 10;
  while (bytes > 0) {
    const uint64_t piece = std::min(bytes, kPiece);
    VARVE_RETURN_IF_ERROR(Read(piece).status());
    bytes -= piece;
  }
  return absl::OkStatus();
}

absl::Status RdbReader::SkipString() {
  VARVE_ASSIGN_OR_RETURN(const Length length, ReadLength());
  if (!length.is_encoding) return Skip(length.value);
  if (length.value < 3) return Skip(uint64_t{1} << length.value);
  VARVE_ASSIGN_OR_RETURN(const uint64_t compressed, ReadCount());
  VARVE_RETURN_IF_ERROR(ReadCount().status());
  return Skip(compressed);
}

absl::Status RdbReader::SkipStrings(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) VARVE_RETURN_IF_ERROR(SkipString());
  return absl::OkStatus();
}

absl::Status RdbReader::SkipCounts(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) VARVE_RETURN_IF_ERROR(ReadCount().status());
  return absl::OkStatus();
}

absl::Status RdbReader::ReadHeader() {
  VARVE_ASSIGN_OR_RETURN(const std::string_view header, Read(kHeaderSize));
  if (!IsRdb(header)) return Damaged("RDB: it does not begin with REDIS");
  const bool is_redis = header.starts_with(kRedisMagic);
  int version = 0;
  for (const char digit : header.substr(is_redis ? kRedisMagic.size() : kValkeyMagic.size())) {
    if (digit < '0' || digit > '9') return Damaged("RDB: its version is no number");
    version = version * 10 + (digit - '0');
  }
  if (is_redis ? version < 1 || version > kNewestRedisVersion : version != kValkeyVersion) {
    const absl::Status where = Damaged(
        fmt::format("RDB version {}; versions 1 to {} of Redis and {} of Valkey can be read",
                    version, kNewestRedisVersion, kValkeyVersion));
    return absl::FailedPreconditionError(where.message());
  }
  version_ = version;
  return absl::OkStatus();
}

absl::Status RdbReader::CheckEnd() {
  if (version_ < 5) return absl::OkStatus();
  Settle();
  const uint64_t computed = crc_;
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(8));
  const uint64_t stored = DecodeFixed64(bytes.data());
  lacks_checksum_ = stored == 0;
  if (stored != 0 && stored != computed)
    return Damaged(fmt::format("RDB: checksum {:016x}, expected {:016x}", computed, stored));
  Settle();
  return absl::OkStatus();
}

absl::Status RdbReader::ReadTableSizes(uint8_t opcode) {
  // Of a cluster: the number of the slot.
  if (opcode == kSlotSizes) VARVE_RETURN_IF_ERROR(ReadCount().status());
  VARVE_ASSIGN_OR_RETURN(const uint64_t keys, ReadCount());
  if (opcode == kTableSizes) announced_keys_ += keys;
  return ReadCount().status();  // keys with an expiry
}

absl::Status RdbReader::SkipKeyMetadata() {
  if (version_ == kValkeyVersion) {  // a job by its name, and ranges of slots
    VARVE_RETURN_IF_ERROR(SkipString());
    VARVE_ASSIGN_OR_RETURN(const uint64_t ranges, ReadCount());
    for (uint64_t i = 0; i < ranges; ++i) VARVE_RETURN_IF_ERROR(SkipCounts(2));
    return absl::OkStatus();
  }
  VARVE_ASSIGN_OR_RETURN(const uint64_t classes, ReadCount());
  for (uint64_t i = 0; i < classes; ++i) {
    VARVE_RETURN_IF_ERROR(Skip(4));
    VARVE_RETURN_IF_ERROR(SkipModule());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RdbReader::ReadOpcode(uint8_t opcode, RdbItem* item) {
  absl::Status read;
  switch (opcode) {
    case kAbout:
      read = SkipStrings(2);
      break;
    case kFunction:
      read = SkipString();
      item->passed_over = "library of functions";
      break;
    case kSlotSizes:
    case kTableSizes:
      read = ReadTableSizes(opcode);
      break;
    case kDatabase: {
      VARVE_ASSIGN_OR_RETURN(database_, ReadCount());
      break;
    }
    case kExpiryMs: {
      VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(8));
      expiry_ms_ = DecodeFixed64(bytes.data());
      break;
    }
    case kExpirySeconds: {
      VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(4));
      expiry_ms_ = uint64_t{DecodeFixed32(bytes.data())} * 1000;
      break;
    }
    case kIdle:
      read = ReadCount().status();
      break;
    case kFrequency:
      read = Skip(1);
      break;
    case kKeyMetadata:
      read = SkipKeyMetadata();
      break;
    case kModuleData:
      read = SkipCounts(3);  // module, opcode of "when", when
      if (read.ok()) read = SkipModule();
      item->passed_over = "module data";
      break;
    default:
      return false;
  }
  if (!read.ok()) return read;
  return true;
}

absl::Status RdbReader::ReadKey(uint8_t type, RdbItem* item) {
  item->database = database_;
  item->expiry_ms = std::exchange(expiry_ms_, 0);
  VARVE_RETURN_IF_ERROR(ReadString(&key_));
  item->key = key_;
  if (type != kStringType) return SkipValue(type, &item->passed_over);
  VARVE_RETURN_IF_ERROR(ReadString(&value_));
  item->value = value_;
  return absl::OkStatus();
}

absl::StatusOr<bool> RdbReader::Next(RdbItem* item) {
  if (version_ == 0) VARVE_RETURN_IF_ERROR(ReadHeader());
  while (true) {
    *item = RdbItem();
    item->offset = input_->offset() + taken_;
    VARVE_ASSIGN_OR_RETURN(const uint8_t opcode, ReadByte());
    if (opcode == kEnd) {
      VARVE_RETURN_IF_ERROR(CheckEnd());
      Settle();
      return false;
    }
    VARVE_ASSIGN_OR_RETURN(const bool understood, ReadOpcode(opcode, item));
    if (!understood) {
      VARVE_RETURN_IF_ERROR(ReadKey(opcode, item));
      return true;
    }
    if (!item->passed_over.empty()) return true;
  }
}

}  // namespace varve
