#include "server/clients/client_login.h"

#include <ctime>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {

absl::Status BecomeUser(ClientState* client, UserPointer user) {
  VARVE_ASSERT(user != nullptr);
  const std::string refusal =
      RefusalByLimits(user->limits, user->name, client->address, std::time(nullptr));
  if (!refusal.empty()) return absl::PermissionDeniedError(refusal);
  if (!client->rights.TakeSeat(*user)) {
    return absl::ResourceExhaustedError(
        fmt::format("ERR max number of clients reached for the user '{}' (maxclients={})",
                    user->name, user->limits.max_clients));
  }
  {
    absl::MutexLock lock(&client->link.names_mutex);
    client->user_name = user->name;
  }
  client->rights.Become(std::move(user));
  client->authenticated = true;
  client->failed_logins = 0;
  VARVE_ASSERT(client->rights.Stale());
  return absl::OkStatus();
}

void BecomeDefaultUser(ClientState* client, const UserTable& users) {
  {
    absl::MutexLock lock(&client->link.names_mutex);
    client->user_name = "default";
  }
  client->authenticated = !users.login_needed();
  client->rights.Begin(&users);
  VARVE_ASSERT(client->rights.user().name == "default");
}

bool MustLogIn(const ClientState& client, const UserTable& users) {
  return !client.authenticated && users.login_needed();
}

}  // namespace varve
