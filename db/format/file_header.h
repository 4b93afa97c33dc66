// The file header begins change files, time files and value files. It says what the file is and
// which number it has, so that no file passes for another one.
//
//      0   8  magic
//      8   4  format version
//     12   4  checksum of bytes 0..12 and 16..24, seed 0
//     16   8  the file's number
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace varve {

inline constexpr size_t kFileHeaderSize = 24;

// A kind of file. The program reads and writes one format version of each.
struct FileKind {
  std::string_view magic;  // 8 bytes
  uint32_t version = 0;
  std::string_view name;  // in messages
};

// Returns the header of file `number`.
std::string EncodeFileHeader(const FileKind& kind, uint64_t number);

// Checks the header that `bytes` begin with. Returns DataLoss, with `path` and the offset, if they
// are damaged or are not of this kind and number, and FailedPrecondition if another version of the
// program wrote them.
[[nodiscard]] absl::Status CheckFileHeader(const FileKind& kind, std::string_view bytes,
                                           const std::string& path, uint64_t number);

}  // namespace varve
