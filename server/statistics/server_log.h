// The server's own log, written for people to standard error or to a file that may be renamed away
// and opened anew.
//
// Thread-safety: StartServerLog() is called once, before other threads exist; all threads may call
// ReopenServerLog().
#pragma once

#include "absl/status/status.h"
#include "server/config/settings.h"

namespace varve {

// InvalidArgument: the file can't be opened.
[[nodiscard]] absl::Status StartServerLog(const ServerConfig& config);

// Opens the file's path anew, after somebody has moved the file. If that fails the old file stays
// in use. Nothing to do without one.
[[nodiscard]] absl::Status ReopenServerLog();

}  // namespace varve
