// How a setting that was changed takes effect while the server runs: the `apply` functions of the
// table in server/config/settings.cc. Each makes the config's value the one in force; an error says
// why that can't be, and leaves the old one in force. Thread-safe.
#pragma once

#include "absl/status/status.h"

namespace varve {

struct ServerConfig;
struct ServerState;

absl::Status ApplyClientsMemory(ServerState& server, const ServerConfig& config);
absl::Status ApplyKeyEvents(ServerState& server, const ServerConfig& config);
// To connections that come from now on.
absl::Status ApplyKeepalive(ServerState& server, const ServerConfig& config);
absl::Status ApplyLogLevel(ServerState& server, const ServerConfig& config);
absl::Status ApplyLoginTimeout(ServerState& server, const ServerConfig& config);
// FailedPrecondition: the limit on open files doesn't allow it.
absl::Status ApplyMaxClients(ServerState& server, const ServerConfig& config);
absl::Status ApplyOutputLimits(ServerState& server, const ServerConfig& config);
// To connections that come from now on; FailedPrecondition: the password comes from a file.
absl::Status ApplyPassword(ServerState& server, const ServerConfig& config);
absl::Status ApplyProtectedMode(ServerState& server, const ServerConfig& config);
absl::Status ApplySlowLog(ServerState& server, const ServerConfig& config);
absl::Status ApplySnapshotMaxAge(ServerState& server, const ServerConfig& config);
absl::Status ApplySync(ServerState& server, const ServerConfig& config);  // to writes from now on
absl::Status ApplyTimeout(ServerState& server, const ServerConfig& config);
absl::Status ApplyUnsent(ServerState& server, const ServerConfig& config);
absl::Status ApplyValueSize(ServerState& server, const ServerConfig& config);

}  // namespace varve
