// The functions close connections after a change of users: those of users who were removed, and
// those that listen to channels, or monitor, although their user may not do so any more.
//
// Thread-safety: the functions may be called on any thread that executes for a connection.
#pragma once

#include <functional>
#include <string_view>

#include "server/clients/client_state.h"
#include "server/clients/clients.h"

namespace varve {

// Closes the connections of the users for whose names `gone` says so. The caller's own connection
// is closed once the reply has left.
void CloseConnections(Clients* clients, ClientState* caller,
                      const std::function<bool(std::string_view name)>& gone);

// Closes connections that listen to what the user of that name may not listen to now.
void CloseForbiddenListeners(Clients* clients, ClientState* caller, std::string_view name);

}  // namespace varve
