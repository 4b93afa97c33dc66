#include "server/clients/client_login.h"

#include <utility>

#include "util/base/assert.h"

namespace varve {

void BecomeUser(ClientState* client, UserPointer user) {
  VARVE_ASSERT(user != nullptr);
  {
    absl::MutexLock lock(&client->link.names_mutex);
    client->user_name = user->name;
  }
  client->rights.Become(std::move(user));
  client->authenticated = true;
  client->failed_logins = 0;
  VARVE_ASSERT(client->rights.Stale());
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

}  // namespace varve
