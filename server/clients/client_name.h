// The name that a client gives its connection or its library. Functions are called by whoever
// executes for the connection.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/execution/command_context.h"

namespace varve {

// Bytes of such a name: it shows up in lists, and in each entry of the slow log.
inline constexpr size_t kMaxClientName = 1024;

// Such names are printable and without blanks. False: this one isn't, or is too long, and the error
// was answered, which calls it `what`.
[[nodiscard]] bool IsClientName(CommandContext& context, std::string_view what,
                                std::string_view name);

void RenameClient(ClientState* client, std::string_view name);

// Names the connection; false: it can't be named so, and the error was answered.
[[nodiscard]] bool SetClientName(CommandContext& context, std::string_view name);

}  // namespace varve
