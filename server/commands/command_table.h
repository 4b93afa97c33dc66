// The table of every command that the server knows. Each group of commands keeps its rows beside
// its handlers (server/commands/command_groups.h); the table joins the groups.
//
// Thread-safety: the table is built when it is first used and does not change after that.
#pragma once

#include <string_view>

#include "absl/types/span.h"
#include "server/execution/request_checks.h"
#include "server/requests/command.h"
#include "util/base/letter_case.h"

namespace varve {

// Returns all commands in alphabetic order.
absl::Span<const Command> AllCommands();

// Returns the command of that name in upper or lower case. Null: there is none.
const Command* FindCommand(std::string_view name);

}  // namespace varve
