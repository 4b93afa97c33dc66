#include "server/config/settings_live.h"

#include "fmt/format.h"
#include "server/config/settings.h"
#include "server/net/descriptor_limit.h"
#include "server/server_state.h"
#include "spdlog/spdlog.h"

namespace varve {

absl::Status ApplyClientsMemory(ServerState& server, const ServerConfig& config) {
  server.live.max_clients_memory = config.server.max_clients_memory;
  return absl::OkStatus();
}

absl::Status ApplyKeepalive(ServerState& server, const ServerConfig& config) {
  server.live.tcp_keepalive = config.server.tcp_keepalive;
  return absl::OkStatus();
}

absl::Status ApplyKeyEvents(ServerState& server, const ServerConfig& config) {
  server.events.Set(config.server.key_events);
  return absl::OkStatus();
}

absl::Status ApplyLogLevel(ServerState& server, const ServerConfig& config) {
  spdlog::set_level(static_cast<spdlog::level::level_enum>(config.log_level));
  return absl::OkStatus();
}

absl::Status ApplyLoginTimeout(ServerState& server, const ServerConfig& config) {
  server.live.login_timeout = config.server.login_timeout;
  return absl::OkStatus();
}

absl::Status ApplyMaxClients(ServerState& server, const ServerConfig& config) {
  const size_t wanted = config.server.max_clients;
  if (const size_t fits = FitClients(wanted); fits < wanted) {
    return absl::FailedPreconditionError(
        fmt::format("the limit on open files allows only {}", fits));
  }
  server.live.max_clients = wanted;
  return absl::OkStatus();
}

absl::Status ApplyOutputLimits(ServerState& server, const ServerConfig& config) {
  server.live.reply_limits.Set(config.server.reply_limits);
  server.live.message_limits.Set(config.server.message_limits);
  return absl::OkStatus();
}

absl::Status ApplyPassword(ServerState& server, const ServerConfig& config) {
  if (!config.password_file.empty()) {
    return absl::FailedPreconditionError(
        "it comes from requirepass-file: change that file and send SIGHUP");
  }
  server.password.Set(config.server.password);
  return absl::OkStatus();
}

absl::Status ApplyProtectedMode(ServerState& server, const ServerConfig& config) {
  server.live.protected_mode = config.server.protected_mode;
  return absl::OkStatus();
}

absl::Status ApplySlowLog(ServerState& server, const ServerConfig& config) {
  server.slow_log.set_threshold_micros(config.server.slow_log_micros);
  server.slow_log.set_max_entries(config.server.slow_log_entries);
  return absl::OkStatus();
}

absl::Status ApplySnapshotMaxAge(ServerState& server, const ServerConfig& config) {
  server.live.snapshot_max_age = config.server.snapshot_max_age;
  return absl::OkStatus();
}

absl::Status ApplySync(ServerState& server, const ServerConfig& config) {
  server.store->SetSync(config.engine.sync);
  return absl::OkStatus();
}

absl::Status ApplyTimeout(ServerState& server, const ServerConfig& config) {
  server.live.idle_timeout = config.server.idle_timeout;
  return absl::OkStatus();
}

absl::Status ApplyUnsent(ServerState& server, const ServerConfig& config) {
  server.live.unsent_max_bytes = config.server.unsent_max_bytes;
  return absl::OkStatus();
}

absl::Status ApplyValueSize(ServerState& server, const ServerConfig& config) {
  server.live.max_value_bytes = config.server.max_value_bytes;
  return absl::OkStatus();
}

}  // namespace varve
