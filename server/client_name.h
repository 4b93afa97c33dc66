// The name that a client gives its connection or its library. Functions are called by whoever executes for the connection.
#pragma once

#include <string_view>

#include "server/command_context.h"

namespace varve {

// Such names show up in lists, so they are printable and without blanks.
bool IsPlainClientName(std::string_view name);

void RenameClient(ClientState* client, std::string_view name);

// Names the connection; false: it can't be named so, and the error was answered.
[[nodiscard]] bool SetClientName(CommandContext& context, std::string_view name);

}  // namespace varve
