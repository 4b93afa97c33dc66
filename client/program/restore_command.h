// The command of client_main that makes a store of a backup or of an archive.
//
// Thread-safety: One thread at a time calls it, as it prints to standard output.
// Requires: line.words[1] is a directory of backups, a backup, or an archive; line.words[2] is the
// directory of the new store.
#pragma once

#include "absl/status/status.h"
#include "client/console/command_line.h"

namespace varve {

[[nodiscard]] absl::Status RestoreOf(const CommandLine& line);

}  // namespace varve
