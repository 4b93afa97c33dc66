// The beginning of an archive that was pruned: which change file is the first that any restore
// needs, and which bases are gone though a change file that is needed still names them. It lies as
// the file FIRST in the archive's directory and is written before anything is removed, so that
// nobody takes what a pruning removes for lost.
//
// It is text, a line for each entry:
//
//   varve-archive-first 1
//   number 17                             of the first change file that is needed
//   gone 20261125T193300Z-1234            a base; any number of such lines
//   checksum <16 hexadecimal digits>      XXH3-64 of everything before this line
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "util/os/file_system.h"

namespace varve {

inline constexpr std::string_view kArchiveFirstName = "FIRST";

struct ArchiveFirst {
  uint64_t number = 0;  // 0: nothing was ever removed
  std::vector<std::string> gone;

  bool IsGone(std::string_view base) const;
  friend bool operator==(const ArchiveFirst&, const ArchiveFirst&) = default;
};

std::string EncodeArchiveFirst(const ArchiveFirst& first);
// Returns DataLoss, with `path`, for whatever EncodeArchiveFirst() does not write, and
// FailedPrecondition if a later version of Varve has written it.
[[nodiscard]] absl::StatusOr<ArchiveFirst> DecodeArchiveFirst(std::string_view text,
                                                              const std::string& path);
// Reads FIRST in the archive's directory. Where there is none, nothing was removed.
[[nodiscard]] absl::StatusOr<ArchiveFirst> ReadArchiveFirst(FileSystem* file_system,
                                                            const std::string& directory);

}  // namespace varve
