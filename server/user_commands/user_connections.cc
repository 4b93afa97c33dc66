#include "server/user_commands/user_connections.h"

#include "absl/container/flat_hash_set.h"
#include "server/access/permissions.h"
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
  if (user == nullptr || user->unrestricted || !clients->pubsub.Any()) return;
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
