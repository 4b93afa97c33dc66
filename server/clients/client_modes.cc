#include "server/clients/client_modes.h"

#include <set>
#include <string>
#include <utility>

#include "server/clients/client_tracking.h"

namespace varve {
namespace {

// After one more, or less (`bytes` wraps around).
void ShowSubscriptions(ClientState* client, size_t kind, size_t bytes) {
  client->link.subscriptions[kind].store(client->modes.subscriptions[kind].size(),
                                         std::memory_order_relaxed);
  client->link.subscription_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

bool Subscribe(Clients* clients, ClientState* client, PubSub::Kind kind, std::string_view name) {
  ClientModes& modes = client->modes;
  const size_t index = static_cast<size_t>(kind);
  std::string key(name);
  if (modes.subscriptions[index].contains(key)) return true;
  const size_t bytes = name.size() + kBytesPerName;
  if (client->link.subscription_bytes.load(std::memory_order_relaxed) + bytes >
      kMaxSubscriptionBytes)
    return false;
  modes.subscriptions[index].insert(std::move(key));
  ShowSubscriptions(client, index, bytes);
  clients->pubsub.Subscribe(kind, name, &client->link.mailbox);
  return true;
}

void Unsubscribe(Clients* clients, ClientState* client, PubSub::Kind kind, std::string_view name) {
  const size_t index = static_cast<size_t>(kind);
  if (client->modes.subscriptions[index].erase(std::string(name)) == 0) return;
  ShowSubscriptions(client, index, size_t{0} - name.size() - kBytesPerName);
  clients->pubsub.Unsubscribe(kind, name, &client->link.mailbox);
}

void Monitor(Clients* clients, ClientState* client) {
  client->modes.monitoring = true;
  client->link.monitoring.store(true, std::memory_order_relaxed);
  clients->monitors.Add(&client->link.mailbox);
}

void LeaveModes(Clients* clients, ClientState* client) {
  for (size_t kind = 0; kind < PubSub::kKinds; ++kind) {
    std::set<std::string>& names = client->modes.subscriptions[kind];
    while (!names.empty()) {
      const std::string name = *names.begin();
      Unsubscribe(clients, client, static_cast<PubSub::Kind>(kind), name);
    }
  }
  if (client->modes.monitoring) clients->monitors.Remove(&client->link.mailbox);
  client->link.monitoring.store(false, std::memory_order_relaxed);
  client->link.no_evict.store(false, std::memory_order_relaxed);
  StopTracking(clients, client);
  EndStream(client);
  client->modes = ClientModes();
  ShowTransaction(client);
}

void EndStream(ClientState* client) {
  if (client->modes.stream != nullptr) client->modes.stream->End();
  client->modes.stream = nullptr;
  client->link.streams.store(false, std::memory_order_relaxed);
}

void ShowTransaction(ClientState* client) {
  const ClientTransaction& transaction = client->modes.transaction;
  client->link.transaction_bytes.store(transaction.bytes(), std::memory_order_relaxed);
  client->link.queued.store(transaction.open ? static_cast<int>(transaction.requests.size()) : -1,
                            std::memory_order_relaxed);
}

void EndTransaction(ClientState* client) {
  client->modes.transaction = ClientTransaction();
  ShowTransaction(client);
}

}  // namespace varve
