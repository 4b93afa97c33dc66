// Reads a whole segment and finds every damaged byte: `verify` and repairs use it. Needs no store
// and no cache.
//
// Thread-safety: a function without state of its own.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "db/segment/segment_builder.h"
#include "util/os/file_system.h"

namespace varve {

// Checks every byte of the file at `path`, which `info` (as the manifest has it) describes: size,
// tail, footer, records and their order, padding, offset table, fences and range tombstones, that
// the table leads to each key, and that the fences are those of the records. DataLoss names file
// and offset of the first damage found. Reads in pieces of 1 MiB, or one record where that is
// larger.
[[nodiscard]] absl::Status VerifySegment(FileSystem* file_system, const std::string& path,
                                         const SegmentInfo& info);

// Checks the size, the tail and the footer alone, and that the footer counts the records and names
// the keys that `info` does: for a file whose every byte is known to be good.
[[nodiscard]] absl::Status VerifySegmentFooter(FileSystem* file_system, const std::string& path,
                                               const SegmentInfo& info);

}  // namespace varve
