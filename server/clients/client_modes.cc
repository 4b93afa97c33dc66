#include "server/clients/client_modes.h"

#include <string>

#include "fmt/format.h"
#include "server/commands/command_names.h"
#include "server/execution/transaction_queue.h"

namespace varve {
namespace {

constexpr size_t kNameBytes = 128;  // of a subscription, beside its name

// After one more, or less (`bytes` wraps around).
void ShowSubscriptions(ClientState* client, size_t kind, size_t bytes) {
  client->link.subscriptions[kind].store(client->modes.subscriptions[kind].size(),
                                         std::memory_order_relaxed);
  client->link.subscription_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

bool Subscribe(ServerState* server, ClientState* client, PubSub::Kind kind, std::string_view name) {
  ClientModes& modes = client->modes;
  const size_t index = static_cast<size_t>(kind);
  std::string key(name);
  if (modes.subscriptions[index].contains(key)) return true;
  const size_t bytes = name.size() + kNameBytes;
  if (client->link.subscription_bytes.load(std::memory_order_relaxed) + bytes >
      kMaxSubscriptionBytes)
    return false;
  modes.subscriptions[index].insert(std::move(key));
  ShowSubscriptions(client, index, bytes);
  server->pubsub.Subscribe(kind, name, &client->link.mailbox);
  return true;
}

void Unsubscribe(ServerState* server, ClientState* client, PubSub::Kind kind,
                 std::string_view name) {
  const size_t index = static_cast<size_t>(kind);
  if (client->modes.subscriptions[index].erase(std::string(name)) == 0) return;
  ShowSubscriptions(client, index, size_t{0} - name.size() - kNameBytes);
  server->pubsub.Unsubscribe(kind, name, &client->link.mailbox);
}

void Monitor(ServerState* server, ClientState* client) {
  client->modes.monitoring = true;
  client->link.monitoring.store(true, std::memory_order_relaxed);
  server->monitors.Add(&client->link.mailbox);
}

void LeaveModes(ServerState* server, ClientState* client) {
  for (size_t kind = 0; kind < PubSub::kKinds; ++kind) {
    std::set<std::string>& names = client->modes.subscriptions[kind];
    while (!names.empty()) {
      const std::string name = *names.begin();
      Unsubscribe(server, client, static_cast<PubSub::Kind>(kind), name);
    }
  }
  if (client->modes.monitoring) server->monitors.Remove(&client->link.mailbox);
  client->link.monitoring.store(false, std::memory_order_relaxed);
  client->link.no_evict.store(false, std::memory_order_relaxed);
  client->modes = ClientModes();
  ShowTransaction(client);
}

bool RefusedByModes(CommandContext& context, const Command& command, Arguments arguments) {
  const ClientState& client = context.client;
  if (client.protocol < 3 && client.modes.Subscribed() &&
      (command.flags & kSubscriberCommand) == 0) {
    context.reply.Error(
        fmt::format("ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT "
                    "/ RESET are allowed in "
                    "this context",
                    FullCommandName(command, arguments)));
    return true;
  }
  if (client.modes.monitoring && (command.flags & (kReadCommand | kWriteCommand)) != 0) {
    // What Redis says to those who monitor.
    context.reply.Error("ERR Replica can't interact with the keyspace");
    return true;
  }
  return false;
}

}  // namespace varve
