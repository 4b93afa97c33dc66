// The time file keeps the marks of the time map whose batches are in segments; the log has the
// others. The manifest names the file and how many of its bytes hold: what lies behind them is of a
// flush that was not installed, and the next flush writes over it.
//
// `NNNNNN.tim`:
//
//   header, 24 bytes (db/format/file_header.h): magic "VARVETIM", format version 1
//   blocks, back to back, one for each flush with marks
//      0   4  checksum of bytes 4..end of the block, seed: the file's number XOR the block's offset
//      4   4  number of marks, at least 1
//      8   .  of each mark: first sequence, instant in ms since 1970 (8 bytes each), ascending
//
// Thread-safety: stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/format/time_mark.h"
#include "util/os/file_system.h"

namespace varve {

// Reads the marks. Returns DataLoss, with path and offset, if they are damaged, and NotFound if the
// file is missing.
// Requires: place.number != 0.
[[nodiscard]] absl::StatusOr<std::vector<TimeMark>> ReadTimeFile(FileSystem* file_system,
                                                                 const std::string& directory,
                                                                 const TimeFilePlace& place);

// Begins a file with the marks and syncs it and the directory.
[[nodiscard]] absl::StatusOr<TimeFilePlace> CreateTimeFile(FileSystem* file_system,
                                                           const std::string& directory,
                                                           uint64_t number,
                                                           absl::Span<const TimeMark> marks);
// Writes the marks behind the bytes of `place` that hold, and syncs the file. Returns the place
// that includes them. After an error what `place` names holds as before.
// Requires: marks is not empty, and they follow those of the file.
[[nodiscard]] absl::StatusOr<TimeFilePlace> AppendToTimeFile(FileSystem* file_system,
                                                             const std::string& directory,
                                                             const TimeFilePlace& place,
                                                             absl::Span<const TimeMark> marks);

}  // namespace varve
