// Functions that change the modes of a connection: subscribed to channels, monitoring, in a
// transaction.
//
// Thread-safety: only the thread that executes for the connection calls them.
#pragma once

#include <string_view>

#include "server/clients/client_state.h"
#include "server/clients/clients.h"

namespace varve {

// The most memory for the names that one connection listens to, channels and prefixes of keys.
inline constexpr size_t kMaxSubscriptionBytes = 16u << 20;
inline constexpr size_t kBytesPerName = 128;  // that each counts more

// Subscribes the client; a second subscription to the name changes nothing. Returns false if it
// would exceed kMaxSubscriptionBytes.
[[nodiscard]] bool Subscribe(Clients* clients, ClientState* client, PubSub::Kind kind,
                             std::string_view name);
void Unsubscribe(Clients* clients, ClientState* client, PubSub::Kind kind, std::string_view name);

void Monitor(Clients* clients, ClientState* client);

// Ends the stream that the client gets, if any.
void EndStream(ClientState* client);

// Returns whether LeaveModes() takes more than a millisecond, so that no I/O thread should call it.
inline bool LeavesSlowly(const ClientState& client) {
  constexpr size_t kBytes = 64u << 10;
  return client.link.subscription_bytes.load(std::memory_order_relaxed) > kBytes;
}

// Ends all modes, as RESET and the end of the connection do. Afterwards no thread delivers a
// message to the client's mailbox.
void LeaveModes(Clients* clients, ClientState* client);

// Drops the client's queued requests and watched keys.
void EndTransaction(ClientState* client);
// Copies how much the client has queued and watches to its link, where other threads see it.
void ShowTransaction(ClientState* client);

}  // namespace varve
