// The functions that change the modes of a connection: subscribed to channels, monitoring, in a
// transaction.
//
// Thread-safety: The thread that executes for the connection calls them.
#pragma once

#include <string_view>

#include "server/clients/client_state.h"
#include "server/clients/clients.h"

namespace varve {

// Memory of the names that one connection listens to, each counted with 128 bytes more.
inline constexpr size_t kMaxSubscriptionBytes = 16u << 20;

// False: that would be more than kMaxSubscriptionBytes. To subscribe twice is the same as once.
[[nodiscard]] bool Subscribe(Clients* clients, ClientState* client, PubSub::Kind kind,
                             std::string_view name);
void Unsubscribe(Clients* clients, ClientState* client, PubSub::Kind kind, std::string_view name);

void Monitor(Clients* clients, ClientState* client);

// Ending its modes takes more than a millisecond: not to be done on an I/O thread.
inline bool LeavesSlowly(const ClientState& client) {
  constexpr size_t kBytes = 64u << 10;
  return client.link.subscription_bytes.load(std::memory_order_relaxed) > kBytes;
}

// Ends all modes, as RESET and the end of the connection do. Others leave nothing more in the
// mailbox.
void LeaveModes(Clients* clients, ClientState* client);

// Forgets what the client has queued and watched.
void EndTransaction(ClientState* client);
// Shows other threads how much the client has queued and watches.
void ShowTransaction(ClientState* client);

}  // namespace varve
