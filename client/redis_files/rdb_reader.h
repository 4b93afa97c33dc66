// The RDB reader reads an RDB file of Redis (versions 1 to 12, of Redis up to 7.4). String keys
// become SET commands (with PXAT, if they expire); values of other types are passed over and
// counted. The reader verifies the checksum at the end of the file.
//
//   "REDIS" 4 digits of version, then items, then 0xFF and the CRC-64 of all before it (8 bytes).
//   An item is an opcode with its data, or a type (1 byte), a key (string) and a value.
//
//   0xFA  two strings: about the file            0xFB  two lengths: sizes of hash tables
//   0xFE  length: database number                0xF5  a string: a library of functions
//   0xFD  expiry of the next key: 4 bytes, s     0xFC  expiry of the next key: 8 bytes, ms
//   0xF8  idle time of the next key: length      0xF9  frequency of the next key: 1 byte
//   0xF7  data of a module
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
#include "client/console/input_file.h"
#include "client/console/record_reader.h"

namespace varve {

class RdbReader {
 public:
  // Reads `input` from where it is, which is where the RDB data begins. `now_ms`: what has expired
  // by then is left out.
  RdbReader(InputFile* input, uint64_t now_ms, ImportNotes* notes)
      : input_(input), now_ms_(now_ms), notes_(notes) {}

  // The next string key as SET. False: the end of the RDB data, whose checksum is right; `input` is
  // right behind it.
  [[nodiscard]] absl::StatusOr<bool> Next(ImportRecord* record);

  // Returns whether a file that begins with these bytes is an RDB.
  static bool IsRdb(std::string_view head) { return head.starts_with("REDIS"); }

 private:
  struct Length {
    uint64_t value = 0;
    bool is_encoding = false;  // value is one of the special encodings of strings
  };

  absl::Status ReadHeader();
  absl::Status CheckEnd();
  // One item that is no key; false: `opcode` is the type of a key's value.
  absl::StatusOr<bool> ReadOpcode(uint8_t opcode);
  absl::StatusOr<bool> ReadKey(uint8_t type, ImportRecord* record);

  absl::StatusOr<std::string_view> Read(size_t bytes);
  absl::StatusOr<uint8_t> ReadByte();
  absl::StatusOr<Length> ReadLength();
  absl::StatusOr<uint64_t> ReadCount();  // a length that is none of the encodings
  absl::Status ReadString(std::string* out);
  absl::Status ReadCompressed(std::string* out);

  absl::Status Skip(uint64_t bytes);
  absl::Status SkipString();
  absl::Status SkipStrings(uint64_t count);
  absl::Status SkipValue(uint8_t type);  // defined in rdb_values.cc, as are the ones below
  absl::Status SkipSortedSet(bool binary_scores);
  absl::Status SkipStream(uint8_t type);
  absl::Status SkipStreamGroup(uint8_t type);
  absl::Status SkipModule();

  InputFile* const input_;
  const uint64_t now_ms_;
  ImportNotes* const notes_;
  bool begun_ = false;
  int version_ = 0;
  uint64_t crc_ = 0;
  uint64_t database_ = 0;
  uint64_t expiry_ms_ = 0;  // of the next key; 0: none
  std::string key_;
  std::string value_;
  std::string expiry_text_;  // of the key that was read last
};

}  // namespace varve
