// A change file of an archive: the commits of a store from one version to another, so that a
// restore can apply them to a base. A file is written once and never changed.
//
//   offset  size  content (integers are little-endian)
//        0     8  "VARVEARC"
//        8     4  format version, 1
//       12     4  n, the size of the base's id
//       16     8  number of the file, from 1 on
//       24     8  history id of the store
//       32     8  after: the version behind which the file begins
//       40     8  last: the version of the last commit
//       48     8  instant of the first commit, in milliseconds since the epoch
//       56     8  instant of the last commit
//       64     8  number of commits
//       72     8  XXH3-64 of the whole predecessor: of the file before, or, behind a base, of the
//                 base's list (tools/backup/backup_list.h)
//       80     8  size of the commits
//       88     8  size of the commits, compressed
//       96     n  id of the base
//     96+n        the commits, compressed with zstd
//      end     8  XXH3-64 of everything before
//
//   commit:    varint version less the one before, varint instant, varint number of operations,
//              operations
//   operation: one byte with the kind (ChangeOperation::Kind), varint number of the namespace;
//              name of the namespace, key, value and metadata, each with its length as a varint
//              before it; varint expiry
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "util/os/file_system.h"
#include "varve/changes.h"
#include "varve/types.h"

namespace varve {

struct ArchiveFileHeader {
  uint64_t number = 0;
  uint64_t history_id = 0;
  SequenceNumber after = kNoSequence;
  SequenceNumber last = kNoSequence;
  uint64_t first_instant_ms = 0;
  uint64_t last_instant_ms = 0;
  uint64_t commits = 0;
  uint64_t predecessor = 0;  // its checksum
  std::string base;          // the id of the backup that the chain begins with

  friend bool operator==(const ArchiveFileHeader&, const ArchiveFileHeader&) = default;
};

struct ArchiveFile {
  ArchiveFileHeader header;
  std::vector<Change> commits;
};

// Returns the name of the file in the directory of change files, such as 0000000007.arc.
std::string ArchiveFileName(uint64_t number);
// Returns nothing for a name that ArchiveFileName() does not give.
std::optional<uint64_t> ParseArchiveFileName(std::string_view name);

// Returns the bytes of the file. Of `header` count the number, the history, `after`, the
// predecessor and the base; the rest follows from the commits. InvalidArgument: the commits do not
// ascend from `after`. Requires: there is a commit.
[[nodiscard]] absl::StatusOr<std::string> EncodeArchiveFile(const ArchiveFileHeader& header,
                                                            absl::Span<const Change> commits);
// Returns DataLoss with `path` and the offset for whatever EncodeArchiveFile() does not write, and
// FailedPrecondition if a later version of Varve has written the file.
[[nodiscard]] absl::StatusOr<ArchiveFile> DecodeArchiveFile(std::string_view bytes,
                                                            const std::string& path);
// Does the same into `file`, whose memory it uses again. After an error the file holds anything.
[[nodiscard]] absl::Status DecodeArchiveFile(std::string_view bytes, const std::string& path,
                                             ArchiveFile* file);
// Reads the header alone; whether the file has its size is verified, and its checksum is not.
[[nodiscard]] absl::StatusOr<ArchiveFileHeader> ReadArchiveFileHeader(FileSystem* file_system,
                                                                      const std::string& path);
// Reads all bytes of a file of moderate size.
[[nodiscard]] absl::StatusOr<std::string> ReadWholeFile(FileSystem* file_system,
                                                        const std::string& path);

}  // namespace varve
