// Helpers of commands that read one key: they answer errors, make the reply depend on what was
// read, and count the lookup. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/execution/command_context.h"

namespace varve {

// Reads the value of `key`; a missing key empties `*value`. Nothing: an error was answered.
[[nodiscard]] std::optional<ReadResult> ReadKey(CommandContext& context, std::string_view key,
                                                std::string* value);

// The same without the value: ReadResult says whether it is there, and its size. Cheap for a large
// value in memory.
[[nodiscard]] std::optional<ReadResult> LookUpKey(CommandContext& context, std::string_view key);

}  // namespace varve
