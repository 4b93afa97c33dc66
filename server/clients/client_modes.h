// The modes of a connection: subscribed to channels, monitoring, without replies. Functions are
// called by whoever executes for the connection.
#pragma once

#include <string_view>

#include "server/commands/command_table.h"
#include "server/execution/command_context.h"

namespace varve {

// Memory of the names that one connection listens to, each counted with 128 bytes more.
inline constexpr size_t kMaxSubscriptionBytes = 16u << 20;

// False: that would be more than kMaxSubscriptionBytes. To subscribe twice is the same as once.
[[nodiscard]] bool Subscribe(ServerState* server, ClientState* client, PubSub::Kind kind,
                             std::string_view name);
void Unsubscribe(ServerState* server, ClientState* client, PubSub::Kind kind,
                 std::string_view name);

void Monitor(ServerState* server, ClientState* client);

// Ending its modes takes more than a millisecond: not to be done on an I/O thread.
inline bool LeavesSlowly(const ClientState& client) {
  constexpr size_t kBytes = 64u << 10;
  return client.link.subscription_bytes.load(std::memory_order_relaxed) > kBytes;
}

// Ends all modes, as RESET and the end of the connection do. Others leave nothing more in the
// mailbox.
void LeaveModes(ServerState* server, ClientState* client);

// A mode of the client forbids the command: answers the error.
[[nodiscard]] bool RefusedByModes(CommandContext& context, const Command& command,
                                  Arguments arguments);

}  // namespace varve
