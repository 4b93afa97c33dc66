// The commands of client_main that write an archive, check one, and make a store of one.
//
// Thread-safety: One thread at a time calls them, as they print to standard output.
// Requires: line.words[1] is the directory of the archive.
#pragma once

#include "absl/status/status.h"
#include "client/console/command_line.h"
#include "tools/backup/restore_plan.h"

namespace varve {

// Archives the server until a signal ends it. What an operator should know goes to standard error.
[[nodiscard]] absl::Status ArchiveOf(const CommandLine& line);
// Checks the archive, and asks the server how far it is ahead. DataLoss: something is missing or
// damaged; the places were printed.
[[nodiscard]] absl::Status CheckArchiveOf(const CommandLine& line);
// Checks the archive without a server.
[[nodiscard]] absl::Status VerifyArchiveOf(const CommandLine& line);
// Restores to the directory line.words[2].
[[nodiscard]] absl::Status RestoreArchiveOf(const CommandLine& line, const RestoreTarget& target);

}  // namespace varve
