// The commands of client_main that take a backup of a server and list those of a directory.
//
// Thread-safety: One thread at a time calls them, as they print to standard output.
// Requires: line.words[1] is the directory of backups.
#pragma once

#include "absl/status/status.h"
#include "client/console/command_line.h"

namespace varve {

[[nodiscard]] absl::Status BackupOf(const CommandLine& line);
// DataLoss: the lists of some backups cannot be read; the others were printed.
[[nodiscard]] absl::Status ListBackupsOf(const CommandLine& line);

}  // namespace varve
