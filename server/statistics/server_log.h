// The server's own log, written for people to standard error or to a file that may be renamed away
// and opened anew. Its newest lines stay in memory, so that they can be asked for over a
// connection.
//
// Thread-safety: StartServerLog() is called once, before other threads exist; all threads may call
// the other functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/config/settings.h"

namespace varve {

// InvalidArgument: the file can't be opened.
[[nodiscard]] absl::Status StartServerLog(const ServerConfig& config);

// Opens the file's path anew, after somebody has moved the file. If that fails the old file stays
// in use. Nothing to do without one.
[[nodiscard]] absl::Status ReopenServerLog();

// The lines in memory are at most so many, and take at most so many bytes together.
inline constexpr size_t kMostRecentLines = 10'000;
inline constexpr size_t kMostRecentBytes = 1u << 20;

// Returns the newest `most` of the lines in memory, oldest first, without line ends. None where the
// log was not started.
std::vector<std::string> RecentLogLines(size_t most);

}  // namespace varve
