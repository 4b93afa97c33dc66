// The identity of a server that runs, by which one is known that is reached in two ways.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"

namespace varve {

// Returns the id that the server has from its start to its end; empty: it does not tell one.
[[nodiscard]] absl::StatusOr<std::string> ServerIdentity(Client* client);

}  // namespace varve
