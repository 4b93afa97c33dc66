// Subcommands of the commands that have some, and full names such as "client|list". Immutable,
// thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "server/commands/command_table.h"

namespace varve {

struct Subcommand {
  const char* name;  // full, lower case
  int arity;         // as in Command
  uint32_t flags;    // of kReadCommand those that read the container's key
  std::string_view summary;
  std::string_view syntax;  // of what follows the subcommand

  // Without the container: "list".
  std::string_view word() const {
    return std::string_view(name).substr(std::string_view(name).find('|') + 1);
  }
};

// In alphabetic order; none for a command without.
absl::Span<const Subcommand> SubcommandsOf(const Command& command);

// Null when there is none of this full name.
const Subcommand* FindSubcommand(std::string_view full_name);

// "get", "client|list"; valid forever. Where the subcommand is unknown, the command's name.
const char* FullCommandName(const Command& command, Arguments arguments);

// A container is called with a subcommand that there is, and with arguments that fit; else answers
// the error.
[[nodiscard]] bool AcceptsSubcommand(CommandContext& context, const Command& command,
                                     Arguments arguments);

// The subcommand that a container is called with, where it is known and the number of its arguments
// fits. Null: it is not, or it was HELP, and that was answered, as Redis would.
const Subcommand* TakeSubcommand(CommandContext& context, Arguments arguments);

// Names that a request may ask about: what is said of one is some hundred times as long as the
// name.
inline constexpr size_t kMaxNamesAsked = 1024;
// Answers an error when there are more.
[[nodiscard]] bool TooManyNames(CommandContext& context, Arguments names);

// The reply to options that a subcommand doesn't take, as Redis words it for some of them.
void ReplySubcommandSyntax(CommandContext& context, Arguments arguments);

}  // namespace varve
