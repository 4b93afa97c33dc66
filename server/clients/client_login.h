// The functions by which a connection becomes that of a user.
//
// Thread-safety: only the thread that executes for the connection calls them.
#pragma once

#include "server/access/user_table.h"
#include "server/clients/client_state.h"

namespace varve {

// The client has logged in as the user.
void BecomeUser(ClientState* client, UserPointer user);
// The client is one that has just connected: it has the rights of "default", and has to log in
// where that user has a password.
void BecomeDefaultUser(ClientState* client, const UserTable& users);

}  // namespace varve
