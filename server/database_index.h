// The number of a database in a request. Pure function but for the error it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/command_context.h"

namespace varve {

// Nothing: it is no 32-bit number, and the error was answered, as Redis words it.
[[nodiscard]] std::optional<int32_t> ParseDatabaseIndex(CommandContext& context, std::string_view text);

}  // namespace varve
