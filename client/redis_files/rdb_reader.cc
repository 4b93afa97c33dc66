#include "client/redis_files/rdb_reader.h"

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
constexpr int kNewestVersion = 12;

enum Opcode : uint8_t {
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

absl::StatusOr<std::string_view> RdbReader::Read(size_t bytes) {
  VARVE_ASSIGN_OR_RETURN(const std::string_view all, input_->Peek(bytes));
  if (all.size() < bytes) return input_->Damaged("RDB: the file ends too early");
  const std::string_view read = all.substr(0, bytes);
  crc_ = Crc64(crc_, read);
  input_->Consume(bytes);
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
  if (first != 0x80 && first != 0x81) return input_->Damaged("RDB: no length has this form");
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(first == 0x80 ? 4 : 8));
  return Length{first == 0x80 ? DecodeBigEndian32(bytes.data()) : DecodeBigEndian64(bytes.data()),
                false};
}

absl::StatusOr<uint64_t> RdbReader::ReadCount() {
  VARVE_ASSIGN_OR_RETURN(const Length length, ReadLength());
  if (length.is_encoding) return input_->Damaged("RDB: a length is expected here");
  return length.value;
}

absl::Status RdbReader::ReadString(std::string* out) {
  VARVE_ASSIGN_OR_RETURN(const Length length, ReadLength());
  if (!length.is_encoding) {
    if (length.value > kLongestString) return input_->Damaged("RDB: a string of more than 512 MiB");
    VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(length.value));
    out->assign(bytes);
    return absl::OkStatus();
  }
  if (length.value == 3) return ReadCompressed(out);
  if (length.value > 3) return input_->Damaged("RDB: no string has this encoding");
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
    return input_->Damaged("RDB: a string of more than 512 MiB");
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(compressed));
  if (!DecompressLzf(bytes, size, out))
    return input_->Damaged("RDB: a compressed string can't be decompressed");
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

absl::Status RdbReader::ReadHeader() {
  begun_ = true;
  VARVE_ASSIGN_OR_RETURN(const std::string_view header, Read(kHeaderSize));
  if (!IsRdb(header)) return input_->Damaged("RDB: it does not begin with REDIS");
  for (const char digit : header.substr(5)) {
    if (digit < '0' || digit > '9') return input_->Damaged("RDB: its version is no number");
    version_ = version_ * 10 + (digit - '0');
  }
  if (version_ < 1 || version_ > kNewestVersion) {
    return absl::FailedPreconditionError(
        fmt::format("{}: RDB version {}; versions 1 to {} can be read", input_->path(), version_,
                    kNewestVersion));
  }
  return absl::OkStatus();
}

absl::Status RdbReader::CheckEnd() {
  if (version_ < 5) return absl::OkStatus();
  const uint64_t computed = crc_;
  VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(8));
  const uint64_t stored = DecodeFixed64(bytes.data());
  if (stored == 0) {
    notes_->warning =
        fmt::format("{}: its RDB data was written without a checksum", input_->path());
  } else if (stored != computed) {
    return input_->Damaged(
        fmt::format("RDB: checksum {:016x}, expected {:016x}", computed, stored));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RdbReader::ReadOpcode(uint8_t opcode) {
  switch (opcode) {
    case kAbout:
      VARVE_RETURN_IF_ERROR(SkipStrings(2));
      return true;
    case kFunction:
      VARVE_RETURN_IF_ERROR(SkipString());
      ++notes_->left_out["library of functions"];
      return true;
    case kSlotSizes:   // of a cluster: its number, keys, keys with an expiry
    case kTableSizes:  // keys, keys with an expiry
      for (int i = opcode == kSlotSizes ? 0 : 1; i < 3; ++i)
        VARVE_RETURN_IF_ERROR(ReadCount().status());
      return true;
    case kDatabase: {
      VARVE_ASSIGN_OR_RETURN(database_, ReadCount());
      return true;
    }
    case kExpiryMs: {
      VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(8));
      expiry_ms_ = DecodeFixed64(bytes.data());
      return true;
    }
    case kExpirySeconds: {
      VARVE_ASSIGN_OR_RETURN(const std::string_view bytes, Read(4));
      expiry_ms_ = uint64_t{DecodeFixed32(bytes.data())} * 1000;
      return true;
    }
    case kIdle:
      VARVE_RETURN_IF_ERROR(ReadCount().status());
      return true;
    case kFrequency:
      VARVE_RETURN_IF_ERROR(Skip(1));
      return true;
    case kModuleData: {
      // Module, opcode of "when", when.
      for (int i = 0; i < 3; ++i) VARVE_RETURN_IF_ERROR(ReadCount().status());
      VARVE_RETURN_IF_ERROR(SkipModule());
      ++notes_->left_out["module data"];
      return true;
    }
    default:
      return false;
  }
}

absl::StatusOr<bool> RdbReader::ReadKey(uint8_t type, ImportRecord* record) {
  const uint64_t expiry_ms = std::exchange(expiry_ms_, 0);
  if (type != kStringType) {
    VARVE_RETURN_IF_ERROR(SkipString());
    VARVE_RETURN_IF_ERROR(SkipValue(type));
    return false;
  }
  VARVE_RETURN_IF_ERROR(ReadString(&key_));
  VARVE_RETURN_IF_ERROR(ReadString(&value_));
  if (database_ != 0) {
    ++notes_->left_out["key of another database"];
    return false;
  }
  if (expiry_ms != 0 && expiry_ms <= now_ms_) {
    ++notes_->expired;
    return false;
  }
  record->words = {"SET", key_, value_};
  if (expiry_ms != 0) {
    ++notes_->with_expiry;
    expiry_text_ = fmt::to_string(expiry_ms);
    record->words.insert(record->words.end(), {"PXAT", expiry_text_});
  }
  record->repeatable = true;
  return true;
}

absl::StatusOr<bool> RdbReader::Next(ImportRecord* record) {
  if (!begun_) VARVE_RETURN_IF_ERROR(ReadHeader());
  record->wrong.clear();
  while (true) {
    record->offset = input_->offset();
    VARVE_ASSIGN_OR_RETURN(const uint8_t opcode, ReadByte());
    if (opcode == kEnd) {
      VARVE_RETURN_IF_ERROR(CheckEnd());
      return false;
    }
    VARVE_ASSIGN_OR_RETURN(const bool understood, ReadOpcode(opcode));
    if (understood) continue;
    VARVE_ASSIGN_OR_RETURN(const bool found, ReadKey(opcode, record));
    if (found) return true;
  }
}

}  // namespace varve
