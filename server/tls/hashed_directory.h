// A directory of certificates and revocation lists as OpenSSL reads it: a file counts if its name
// is the hash of its subject with a number behind it ("9d66eef0.0", or "9d66eef0.r1" for a list).
//
// Thread-safety: the function is pure but for the file system, and is not for I/O threads.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace varve {

// The number of entries, of any name, that a directory may have: each look lists all of them.
inline constexpr size_t kMaxHashedEntries = 10'000;

// Returns a text that changes when a file with such a name is added, removed, replaced or written
// to, also one behind a link. It does not say what the files hold. InvalidArgument, with the reason
// alone: the path is no directory that can be read, or it has too many entries.
[[nodiscard]] absl::StatusOr<std::string> DescribeHashedFiles(const std::string& path);

}  // namespace varve
