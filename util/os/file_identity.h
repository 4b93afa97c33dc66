// The identity of a file of the machine: two names are names of one file if theirs are equal.
//
// Thread-safety: a stateless function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace varve {

using FileIdentity = std::pair<uint64_t, uint64_t>;  // the device, and the number there

// Returns nothing if there is no such file, or where the machine does not tell.
std::optional<FileIdentity> IdentityOf(const std::string& path);

}  // namespace varve
