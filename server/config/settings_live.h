// The functions by which a changed setting takes effect while the server runs: the `apply`
// functions of the table in server/config/settings.cc. Each puts the value of the config into
// force, or returns an error that says why that is not possible and leaves the old value in force.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include "absl/status/status.h"

namespace varve {

struct ServerConfig;
class LiveSettings;

absl::Status ApplyBackupTtl(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyClientsMemory(LiveSettings& live, const ServerConfig& config);
// The link to the primary reads its settings by itself when it connects, and INFO when it is asked.
absl::Status ApplyLink(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyMinReplicas(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyStaleData(LiveSettings& live, const ServerConfig& config);
absl::Status ApplySyncReplicas(LiveSettings& live, const ServerConfig& config);
// FailedPrecondition: the directory takes more, or the server was started without a bound.
absl::Status ApplyDiskLimit(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyKeyEvents(LiveSettings& live, const ServerConfig& config);
// To connections that come from now on.
absl::Status ApplyKeepalive(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyLogLevel(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyLoginTimeout(LiveSettings& live, const ServerConfig& config);
// FailedPrecondition: the limit on open files doesn't allow it.
absl::Status ApplyMaxClients(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyMaxMemory(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyOutputLimits(LiveSettings& live, const ServerConfig& config);
// To connections that come from now on; FailedPrecondition: the password comes from a file.
absl::Status ApplyPassword(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyProtectedMode(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyAccess(LiveSettings& live, const ServerConfig& config);
absl::Status ApplySlowLog(LiveSettings& live, const ServerConfig& config);
absl::Status ApplySnapshotMaxAge(LiveSettings& live, const ServerConfig& config);
absl::Status ApplySync(LiveSettings& live, const ServerConfig& config);  // to writes from now on
absl::Status ApplyTimeout(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyTls(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyTrackedKeys(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyUnsent(LiveSettings& live, const ServerConfig& config);
absl::Status ApplyValueSize(LiveSettings& live, const ServerConfig& config);

}  // namespace varve
