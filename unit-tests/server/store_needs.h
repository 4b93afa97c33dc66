// The checks that a server does what the table of needs (server/execution/store_capability.h) says
// of its commands, for tests over stores that meet none of the needs.
#pragma once

#include "client/client.h"
#include "varve/store.h"

namespace varve::testing {

// Sends what each row of the table is about, and expects what the row says. Rows without a request
// that shows them fail. Leaves keys and namespaces behind.
// Requires: the server is empty, and the client has sent nothing yet.
void ExpectWhatTheTableSays(Client& client, const StoreCapabilities& capabilities);

}  // namespace varve::testing
