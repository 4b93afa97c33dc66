// The functions by which a connection becomes that of a user.
//
// Thread-safety: only the thread that executes for the connection calls them.
#pragma once

#include "absl/status/status.h"
#include "server/access/user_table.h"
#include "server/clients/client_state.h"

namespace varve {

// The client has given the user's password, or proved in another way that it is the user. An error,
// whose message is that of the reply: the user's limits forbid it, and the client stays who it was.
[[nodiscard]] absl::Status BecomeUser(ClientState* client, UserPointer user);
// The client is one that has just connected: it has the rights of "default", and has to log in
// where that user has a password.
void BecomeDefaultUser(ClientState* client, const UserTable& users);
// Returns whether the client has to log in before it may do more than that.
bool MustLogIn(const ClientState& client, const UserTable& users);

}  // namespace varve
