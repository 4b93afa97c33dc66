// The commands of Redis 7 for features that Varve does not have, so that a client hears more than
// "unknown command".
//
// Thread-safety: The functions are pure.
#pragma once

#include <string>
#include <string_view>

namespace varve {

// The error reply to such a command, in upper or lower case; empty for every other name.
std::string ForeignCommandError(std::string_view name);

}  // namespace varve
