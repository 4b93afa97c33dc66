// Refuses requests that would write keys of several groups as one step (varve/key_group.h), by
// their keys, before anything is read or written. What a request says nothing of, such as the
// database of a COPY, the store refuses at the commit with the same words.
//
// Thread-safety: the thread that executes for the connection calls these functions; the store
// answers locally.
#pragma once

#include <string_view>

#include "server/clients/client_transaction.h"
#include "server/execution/command_context.h"
#include "server/requests/command.h"

namespace varve {

// Returns whether the command writes several keys as one step, by its row.
inline bool WritesTogether(const Command& command) {
  return (command.flags & (kWriteCommand | kKeyByKeyCommand)) == kWriteCommand &&
         command.keys.first != 0 && command.keys.last != command.keys.first;
}

// Each returns true if the keys are not of one group, and then has answered CROSSGROUP with the
// reason and what to do.
// The keys of a request that WritesTogether().
[[nodiscard]] bool RefusedAcrossGroups(CommandContext& context, const Command& command,
                                       Arguments arguments);
// Two keys, which may be in two namespaces.
[[nodiscard]] bool RefusedAcrossGroups(CommandContext& context, std::string_view source,
                                       NamespaceId space, std::string_view target);
// All that EXEC would read and write, if it would write or something is watched. A database that
// the transaction selects counts from there on.
[[nodiscard]] bool RefusedAcrossGroups(CommandContext& context,
                                       const ClientTransaction& transaction);

}  // namespace varve
