// The RDB reader reads an RDB file of Redis (versions 1 to 15) or of Valkey (version 80), item by
// item. It knows the values of string keys; values of other types are passed over, and only their
// type is told. It verifies the checksum at the end of the file. Its memory is bounded by the
// largest string.
//
//   "REDIS" 4 digits of version, or "VALKEY" 3 digits, then items, then 0xFF and the CRC-64 of all
//   before it (8 bytes).
//   An item is an opcode with its data, or a type (1 byte), a key (string) and a value.
//
//   0xFA  two strings: about the file            0xFB  two lengths: sizes of hash tables
//   0xFE  length: database number                0xF5  a string: a library of functions
//   0xFD  expiry of the next key: 4 bytes, s     0xFC  expiry of the next key: 8 bytes, ms
//   0xF8  idle time of the next key: length      0xF9  frequency of the next key: 1 byte
//   0xF7  data of a module                       0xF4  three lengths: sizes of a slot
//   0xF3  of Redis: what modules keep beside the next key; of Valkey: a slot that is imported
//
//   length: 00LLLLLL | 01LLLLLL LLLLLLLL | 0x80, 4 bytes | 0x81, 8 bytes; most significant byte
//           first
//   string: length, bytes | 0xC0, int8 | 0xC1, int16 | 0xC2, int32 (least significant byte first)
//           | 0xC3, length of LZF, length, LZF
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "util/redis_format/rdb_input.h"

namespace varve {

// An item of an RDB is a key, or something else that only Redis has a use for. Views are valid
// until the next item is read.
struct RdbItem {
  // Empty for a string. Else what was passed over: "hash", "list", "set", "sorted set", "stream",
  // "module type"; or, of no key, "library of functions" and "module data".
  std::string_view passed_over;
  uint64_t offset = 0;  // where it begins in the input
  uint64_t database = 0;
  std::string_view key;
  std::string_view value;  // of a string
  uint64_t expiry_ms = 0;  // since the epoch; 0: never
};

// Returns the name of a type of values by its number: "string", or as RdbItem::passed_over has it.
// Empty: there is no such type.
std::string_view RdbTypeName(uint8_t type);

class RdbReader {
 public:
  // Reads `input` from where it is, which is where the RDB data begins.
  // Requires: `input` outlives the reader, and nobody else reads it meanwhile.
  explicit RdbReader(RdbInput* input) : input_(input) {}
  RdbReader(const RdbReader&) = delete;
  RdbReader& operator=(const RdbReader&) = delete;

  // Reads the next item. False: the RDB data ends, its checksum is right, and `input` is right
  // behind it. DataLoss: it is damaged. FailedPrecondition: it is of a version that is not known.
  [[nodiscard]] absl::StatusOr<bool> Next(RdbItem* item);

  // Returns whether the data has no checksum. Valid once Next() has returned false.
  bool lacks_checksum() const { return lacks_checksum_; }
  // Returns how many keys the tables of sizes have announced so far, of all databases together.
  uint64_t announced_keys() const { return announced_keys_; }

  // Returns whether a file that begins with these bytes is an RDB.
  static bool IsRdb(std::string_view head) {
    return head.starts_with("REDIS") || head.starts_with("VALKEY");
  }

 private:
  struct Length {
    uint64_t value = 0;
    bool is_encoding = false;  // value is one of the special encodings of strings
  };

  absl::Status ReadHeader();
  absl::Status CheckEnd();
  // Reads one item that is no key. False: `opcode` is the type of a key's value.
  absl::StatusOr<bool> ReadOpcode(uint8_t opcode, RdbItem* item);
  absl::Status ReadKey(uint8_t type, RdbItem* item);
  absl::Status ReadTableSizes(uint8_t opcode);
  absl::Status SkipKeyMetadata();

  // Returns the next bytes, which are valid until the next call.
  absl::StatusOr<std::string_view> Read(size_t bytes);
  // Has the input consume what was read.
  void Settle();
  absl::Status Damaged(std::string_view what);
  absl::StatusOr<uint8_t> ReadByte();
  absl::StatusOr<Length> ReadLength();
  absl::StatusOr<uint64_t> ReadCount();  // a length that is none of the encodings
  absl::Status ReadString(std::string* out);
  absl::Status ReadCompressed(std::string* out);

  absl::Status Skip(uint64_t bytes);
  absl::Status SkipString();
  absl::Status SkipStrings(uint64_t count);
  absl::Status SkipCounts(uint64_t count);
  // Sets *name to the name of the type. It and the functions below are in rdb_values.cc.
  absl::Status SkipValue(uint8_t type, std::string_view* name);
  absl::Status SkipElements(uint8_t type);
  absl::Status SkipSortedSet(bool binary_scores);
  absl::Status SkipStream(uint8_t type);
  absl::Status SkipStreamGroup(uint8_t type);
  absl::Status SkipStreamProducers();
  absl::Status SkipModule();

  RdbInput* const input_;
  std::string_view ahead_;  // what the input has buffered
  size_t taken_ = 0;        // bytes of `ahead_` that were read
  int version_ = 0;         // 0: the header was not read yet
  uint64_t crc_ = 0;        // of what the input has consumed
  uint64_t database_ = 0;
  uint64_t expiry_ms_ = 0;  // of the next key; 0: none
  uint64_t announced_keys_ = 0;
  bool lacks_checksum_ = false;
  std::string key_;
  std::string value_;
};

}  // namespace varve
