// The subcommands of all containers, and what the handlers of containers share.
//
// Thread-safety: the table of subcommands is constant; the thread that executes for the connection
// calls the functions that take a context.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/types/span.h"
#include "server/commands/command_table.h"

namespace varve {

// Returns the subcommands of the container of that name in alphabetic order; none for any other
// name.
absl::Span<const Subcommand> SubcommandsOf(std::string_view container);

// Returns the subcommand of that full name in upper or lower case. Null: there is none.
const Subcommand* FindSubcommand(std::string_view full_name);

// Returns the subcommand that a container is called with. Null: the subcommand is unknown, or the
// number of its arguments does not fit, or it is HELP; then the request has been answered.
const Subcommand* TakeSubcommand(CommandContext& context, Arguments arguments);

// The number of names that one request may ask about: what is answered for each name is some
// hundred times as long as the name.
inline constexpr size_t kMaxNamesAsked = 1024;
// Returns true, and has answered the error, if there are more names.
[[nodiscard]] bool TooManyNames(CommandContext& context, Arguments names);

// Answers the error that some of Redis' subcommands give for options that they do not take.
void ReplySubcommandSyntax(CommandContext& context, Arguments arguments);

}  // namespace varve
