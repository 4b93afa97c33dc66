// Functions for the client that tracks keys (CLIENT TRACKING): its mode, and the keys that it is
// about to read. KeyTracking tells it of changes.
//
// Thread-safety: only the thread that executes for the connection calls them.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/clients/client_state.h"
#include "server/clients/clients.h"
#include "server/requests/command.h"

namespace varve {

// Makes the client track in the mode `wanted`, or changes its mode; the prefixes are added to those
// that it has. Fails, and changes nothing, if there is no connection to redirect to or the prefixes
// take too much memory.
[[nodiscard]] absl::Status StartTracking(Clients* clients, ClientState* client,
                                         const TrackingMode& wanted,
                                         absl::Span<const std::string_view> prefixes);
// Does nothing if the client does not track.
void StopTracking(Clients* clients, ClientState* client);

// Returns whether the request reads keys that it names.
bool ReadsKeys(const Command& command, Arguments arguments);
// Notes what a client that tracks is about to read and may keep, whatever CLIENT CACHING says.
void RememberReads(Clients* clients, ClientState* client, const Command& command,
                   Arguments arguments);
// Does so if the mode of the client, and CLIENT CACHING, say that it may keep that.
void TrackReads(Clients* clients, ClientState* client, const Command& command, Arguments arguments);
// Notes that a request was answered: CLIENT CACHING held for it alone, if it did not begin a
// transaction.
void EndCaching(ClientState* client, const Command* command);

}  // namespace varve
