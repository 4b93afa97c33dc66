// Instants as commands name them: EX and PX count from now, EXAT and PXAT from the epoch.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/execution/command_context.h"

namespace varve {

struct ExpiryUnit {
  bool seconds = true;
  bool from_now = true;

  bool operator==(const ExpiryUnit&) const = default;
};

// Returns the unit of the option EX, PX, EXAT or PXAT; nothing for other words.
std::optional<ExpiryUnit> ExpiryUnitOf(std::string_view option);

// Returns the instant in milliseconds since the epoch. Nothing: an error was answered, in the name
// of `command`. Times of EXPIRE may be negative (`may_be_past`): then the key is to go at once.
[[nodiscard]] std::optional<int64_t> ParseExpiry(CommandContext& context, std::string_view command,
                                                 std::string_view time, ExpiryUnit unit,
                                                 bool may_be_past = false);

// Returns how a record holds the instant; one before the epoch is long gone, too.
inline uint64_t ExpiryMillis(int64_t instant_ms) {
  return instant_ms > 0 ? static_cast<uint64_t>(instant_ms) : 1;
}

}  // namespace varve
