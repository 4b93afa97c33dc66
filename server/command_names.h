// Subcommands of the commands that have some, and full names such as "client|list". Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "server/command_table.h"

namespace varve {

struct Subcommand {
  const char* name;  // full, lower case
  int arity;         // as in Command
  uint32_t flags;
};

// In alphabetic order; none for a command without.
absl::Span<const Subcommand> SubcommandsOf(const Command& command);

// Null when there is none of this full name.
const Subcommand* FindSubcommand(std::string_view full_name);

// "get", "client|list"; valid forever. Where the subcommand is unknown, the command's name.
const char* FullCommandName(const Command& command, Arguments arguments);

}  // namespace varve
