// Databases: namespaces known by a number, as in Redis. Database n is namespace n, and comes into
// being when it is first selected or written to; until then it is empty.
//
// Thread-safety: all functions may be called on any thread that may use their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/execution/command_context.h"

namespace varve {

// Returns the database that a request names by its number. Nothing: there is none, and the error
// was answered, as Redis words it.
[[nodiscard]] std::optional<NamespaceId> ParseDatabase(CommandContext& context,
                                                       std::string_view text);

// Creates the database if it is not there. False: it can't be made, and the error was answered.
[[nodiscard]] bool OpenDatabase(CommandContext& context, NamespaceId database);

// Returns whether a namespace of this name is a database.
[[nodiscard]] bool IsDatabaseNumber(std::string_view name);
// Returns the namespace of that name; a number is that of a database, which is created if it is not
// there. Nothing: there is none, and the error was answered.
[[nodiscard]] std::optional<NamespaceDescription> FindNamespace(CommandContext& context,
                                                                std::string_view name);

// Returns the databases that were used once, ascending, also those that --databases does not reach
// any more.
[[nodiscard]] absl::StatusOr<std::vector<NamespaceId>> Databases(const StoreContents& store);

// Counts the keys of all namespaces together.
[[nodiscard]] absl::StatusOr<CountResult> CountAllKeys(StoreContents& store);

}  // namespace varve
