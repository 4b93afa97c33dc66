// The value file format is what stands in value files, `NNNNNN.val`, which hold values that
// segments point to (the field's blob files). A value file has one of two forms:
//
//   A former log file (db/format/log_format.h) begins with "VARVELOG"; its values lie in its
//   blocks. A file that was written as a value file has large operations
//   (db/format/large_operation.h) back to back behind a header page, up to the end.
//
//   header page, 4096 bytes, the rest zero:
//      0   8  magic "VARVEVAL"
//      8   4  format version: 1
//     12   4  checksum of bytes 0..12 and 16..24, seed 0
//     16   8  the file's number
//
// A flush or a collection writes a file once, syncs it before a manifest names a segment that
// points into it, and never changes it. Only the segments tell which of its values are still in
// use.
//
// Thread-safety: stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "util/os/file_system.h"

namespace varve {

inline constexpr char kValueFileMagic[8] = {'V', 'A', 'R', 'V', 'E', 'V', 'A', 'L'};
inline constexpr uint32_t kValueFileVersion = 1;
inline constexpr size_t kValueFileHeaderSize = 24;
inline constexpr size_t kValueFilePageSize = 4096;

std::string EncodeValueFileHeader(uint64_t number);
// Checks the first page of file `number`. Returns DataLoss if it is damaged, and FailedPrecondition
// if a later version has written it.
[[nodiscard]] absl::Status CheckValueFileHeader(std::string_view page, const std::string& path,
                                                uint64_t number);

// Reads all of value file `number`, of either form, and calls `tell` for each damaged place.
// `store_id` is that of the store's log; a former log file whose header is good has the id that is
// there, for a store that was restored from a backup has an id of its own. Returns only errors of
// reading.
[[nodiscard]] absl::Status SurveyValueFile(
    const File& file, uint64_t number, uint64_t store_id,
    absl::FunctionRef<void(const absl::Status& damage)> tell);

}  // namespace varve
