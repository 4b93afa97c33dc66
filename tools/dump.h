// Prints log files (the field's WAL) and segments (SSTables) in readable form, for people who look
// into a store while no server runs on it.
//
// Read-only, and needs nothing but the file: no manifest, no store. Where bytes are damaged it says
// so and goes on with the next block, batch or record that its checksum proves; stored checksums
// stand beside those that the bytes give. Lines begin with the offset in the file that they are
// about; keys and values are escaped as in C, long ones cut.
//
// Thread-safety: functions without state of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "type/record.h"
#include "util/os/file_system.h"

namespace varve {

// Takes one line, without its end.
using DumpLine = std::function<void(std::string_view line)>;

// Prints the log file at `path`, or all log files of the directory `path` in order. DataLoss, after
// everything readable was printed: the message says how many places are damaged. Reads a file as a
// whole.
[[nodiscard]] absl::Status DumpLog(FileSystem* file_system, const std::string& path,
                                   const DumpLine& print);

// Prints the segment at `path`, whose name is NNNNNN.seg: where its parts lie, its range
// tombstones, and its records. DataLoss as above; the parts that are not printed (each page of the
// offset table, fences) are checked, too. Reads in pieces of 1 MiB, or a record where that is
// larger.
[[nodiscard]] absl::Status DumpSegment(FileSystem* file_system, const std::string& path,
                                       const DumpLine& print);

// Prints what the manifest in `directory` says of the store: segments by level and run, log files,
// namespaces and clones. It names no key. A server may have the store open.
[[nodiscard]] absl::Status DumpManifest(FileSystem* file_system, const std::string& directory,
                                        const DumpLine& print);

// Returns words such as "checksum 1a2b3c4d, but its 120 bytes give 5e6f7a8b".
std::string DescribeChecksums(uint32_t stored, uint32_t given, uint64_t bytes);

// Returns words such as "put generation 1 "key" = "value" (5 bytes)".
std::string DescribeRecord(const RecordView& record);

}  // namespace varve
