#include "server/user_commands/user_connections.h"

#include "absl/container/flat_hash_set.h"
#include "server/access/permissions.h"
#include "server/commands/command_table.h"
#include "util/base/assert.h"

namespace varve {
namespace {

void Close(ClientState* client, const ClientState* caller) {
  VARVE_ASSERT(client != nullptr && caller != nullptr);
  if (client == caller) {
    client->close_after_reply = true;  // so that it learns of it
  } else {
    client->link.mailbox.RequestClose();
  }
}

bool IsOf(const ClientState& client, const std::function<bool(std::string_view)>& chosen) {
  absl::MutexLock lock(&client.link.names_mutex);
  return chosen(client.user_name);
}

// Closes the connections of the user that see every command, if it may not see them any more.
void CloseForbiddenMonitors(Clients* clients, ClientState* caller, const User& user) {
  VARVE_ASSERT(!user.unrestricted);
  const Command& monitor = *FindCommand("monitor");
  const std::string_view request = monitor.name;
  if (!FindDenial(clients->users.catalog(), user, monitor, Arguments(&request, 1), Place(),
                  CheckPlace::kNo)) {
    return;
  }
  clients->registry.ForEach([&](ClientState& client) {
    const bool monitors = client.link.monitoring.load();
    if (monitors && IsOf(client, [&](std::string_view its) { return its == user.name; }))
      Close(&client, caller);
  });
}

}  // namespace

void CloseConnections(Clients* clients, ClientState* caller,
                      const std::function<bool(std::string_view name)>& gone) {
  VARVE_ASSERT(gone != nullptr);
  clients->registry.ForEach([&](ClientState& client) {
    if (IsOf(client, gone)) Close(&client, caller);
  });
}

void CloseForbiddenListeners(Clients* clients, ClientState* caller, std::string_view name) {
  const UserPointer user = clients->users.Find(name);
  if (user == nullptr || user->unrestricted) return;
  CloseForbiddenMonitors(clients, caller, *user);
  if (!clients->pubsub.Any()) return;
  absl::flat_hash_set<const Mailbox*> forbidden;
  for (size_t kind = 0; kind < PubSub::kKinds; ++kind) {
    const auto which = static_cast<PubSub::Kind>(kind);
    clients->pubsub.ForEachSubscription(
        which, [&](std::string_view channel, const Mailbox* mailbox) {
          if (!AllowsChannel(*user, channel, which == PubSub::Kind::kPattern))
            forbidden.insert(mailbox);
        });
  }
  if (forbidden.empty()) return;
  // A mailbox that has gone meanwhile is that of no client here, or of one that came just now and
  // connects again.
  clients->registry.ForEach([&](ClientState& client) {
    const bool listens = forbidden.contains(&client.link.mailbox);
    if (listens && IsOf(client, [&](std::string_view its) { return its == name; }))
      Close(&client, caller);
  });
}

}  // namespace varve
