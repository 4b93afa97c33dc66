// The commands of client_main on files that no server has open: dumps and repair of a store, and
// verify, also of backups and archives.
//
// Thread-safety: One thread at a time calls them, as they print to standard output.
// Requires: line.words[1] is the path.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/console/command_line.h"

namespace varve {

[[nodiscard]] absl::Status DumpLogOf(const CommandLine& line);
[[nodiscard]] absl::Status DumpSegmentOf(const CommandLine& line);
[[nodiscard]] absl::Status DumpManifestOf(const CommandLine& line);
// Verifies the store, the backup, all the backups or the archive of the directory, whichever lies
// there.
// DataLoss: something is damaged; the places were printed.
[[nodiscard]] absl::Status VerifyOf(const CommandLine& line);
[[nodiscard]] absl::Status RepairOf(const CommandLine& line);

// Returns what the manifest of the store in the directory says of its files, without keys.
[[nodiscard]] absl::StatusOr<std::string> DescribeStoreFiles(const std::string& directory);

}  // namespace varve
