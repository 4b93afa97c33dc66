// Databases: namespaces known by a number, as in Redis. Database n is namespace n, and comes into
// being when it is first selected or written to; until then it is empty. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/execution/command_context.h"

namespace varve {

// The database that a request names by its number. Nothing: there is none, and the error was
// answered, as Redis words it.
[[nodiscard]] std::optional<NamespaceId> ParseDatabase(CommandContext& context,
                                                       std::string_view text);

// Sees to it that the database is there. False: it can't be made, and the error was answered.
[[nodiscard]] bool OpenDatabase(CommandContext& context, NamespaceId database);

// Those that were used once, ascending; also those that --databases doesn't reach any more.
[[nodiscard]] absl::StatusOr<std::vector<NamespaceId>> Databases(const StoreContents& store);

// Of all namespaces together.
[[nodiscard]] absl::StatusOr<CountResult> CountAllKeys(StoreContents& store);

}  // namespace varve
