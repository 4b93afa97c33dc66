#include "server/config/settings_live.h"

#include "fmt/format.h"
#include "server/config/descriptor_limit.h"
#include "server/config/live_settings.h"
#include "server/config/settings.h"
#include "spdlog/spdlog.h"
#include "util/base/status.h"

namespace varve {

absl::Status ApplyClientsMemory(LiveSettings& live, const ServerConfig& config) {
  live.live_options().max_clients_memory = config.server.max_clients_memory;
  return absl::OkStatus();
}

absl::Status ApplyDiskLimit(LiveSettings& live, const ServerConfig& config) {
  VARVE_RETURN_IF_ERROR(CheckDataLimits(config));
  return live.SetDiskLimit(config.max_disk_bytes);
}

absl::Status ApplyKeepalive(LiveSettings& live, const ServerConfig& config) {
  live.live_options().tcp_keepalive = config.server.tcp_keepalive;
  return absl::OkStatus();
}

absl::Status ApplyKeyEvents(LiveSettings& live, const ServerConfig& config) {
  live.SetKeyEvents(config.server.key_events);
  return absl::OkStatus();
}

absl::Status ApplyLink(LiveSettings& live, const ServerConfig& config) { return absl::OkStatus(); }

absl::Status ApplyLogLevel(LiveSettings& live, const ServerConfig& config) {
  spdlog::set_level(static_cast<spdlog::level::level_enum>(config.log_level));
  return absl::OkStatus();
}

absl::Status ApplyLoginTimeout(LiveSettings& live, const ServerConfig& config) {
  live.live_options().login_timeout = config.server.login_timeout;
  return absl::OkStatus();
}

absl::Status ApplyMaxClients(LiveSettings& live, const ServerConfig& config) {
  const size_t wanted = config.server.max_clients;
  if (const size_t fits = FitClients(wanted); fits < wanted) {
    return absl::FailedPreconditionError(
        fmt::format("the limit on open files allows only {}", fits));
  }
  live.live_options().max_clients = wanted;
  return absl::OkStatus();
}

absl::Status ApplyMaxMemory(LiveSettings& live, const ServerConfig& config) {
  VARVE_RETURN_IF_ERROR(CheckDataLimits(config));
  live.live_options().max_memory = config.server.max_memory;
  live.SetDataLimit(config.server);
  return absl::OkStatus();
}

absl::Status ApplyMinReplicas(LiveSettings& live, const ServerConfig& config) {
  live.live_options().min_followers = config.server.replication.min_followers;
  live.live_options().max_follower_lag = config.server.replication.max_lag;
  return absl::OkStatus();
}

absl::Status ApplyOutputLimits(LiveSettings& live, const ServerConfig& config) {
  live.live_options().reply_limits.Set(config.server.reply_limits);
  live.live_options().message_limits.Set(config.server.message_limits);
  return absl::OkStatus();
}

absl::Status ApplyPassword(LiveSettings& live, const ServerConfig& config) {
  if (!config.password_file.empty()) {
    return absl::FailedPreconditionError(
        "it comes from requirepass-file: change that file and send SIGHUP");
  }
  live.SetPassword(config.server.password);
  return absl::OkStatus();
}

absl::Status ApplyProtectedMode(LiveSettings& live, const ServerConfig& config) {
  live.live_options().protected_mode = config.server.protected_mode;
  return absl::OkStatus();
}

absl::Status ApplyAccess(LiveSettings& live, const ServerConfig& config) {
  live.SetAccess(config.server);
  return absl::OkStatus();
}

absl::Status ApplySlowLog(LiveSettings& live, const ServerConfig& config) {
  live.SetSlowLog(config.server);
  return absl::OkStatus();
}

absl::Status ApplyBackupTtl(LiveSettings& live, const ServerConfig& config) {
  live.live_options().backup_ttl = config.server.backup_ttl;
  return absl::OkStatus();
}

absl::Status ApplySnapshotMaxAge(LiveSettings& live, const ServerConfig& config) {
  live.live_options().snapshot_max_age = config.server.snapshot_max_age;
  return absl::OkStatus();
}

absl::Status ApplyStaleData(LiveSettings& live, const ServerConfig& config) {
  live.live_options().serves_stale_data = config.server.replication.serves_stale_data;
  return absl::OkStatus();
}

absl::Status ApplySyncReplicas(LiveSettings& live, const ServerConfig& config) {
  live.SetSyncReplicas(config.server.replication.sync_followers);
  return absl::OkStatus();
}

absl::Status ApplySync(LiveSettings& live, const ServerConfig& config) {
  live.SetSync(config.engine.sync);
  return absl::OkStatus();
}

absl::Status ApplyTimeout(LiveSettings& live, const ServerConfig& config) {
  live.live_options().idle_timeout = config.server.idle_timeout;
  return absl::OkStatus();
}

absl::Status ApplyTls(LiveSettings& live, const ServerConfig& config) {
  return live.SetTls(config.server);
}

absl::Status ApplyTrackedKeys(LiveSettings& live, const ServerConfig& config) {
  live.SetTrackedKeys(config.server.tracking_max_keys);
  return absl::OkStatus();
}

absl::Status ApplyUnsent(LiveSettings& live, const ServerConfig& config) {
  live.live_options().unsent_max_bytes = config.server.unsent_max_bytes;
  return absl::OkStatus();
}

absl::Status ApplyValueSize(LiveSettings& live, const ServerConfig& config) {
  live.live_options().max_value_bytes = config.server.max_value_bytes;
  return absl::OkStatus();
}

}  // namespace varve
