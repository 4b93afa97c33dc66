#include "server/execution/server_state.h"

#include <algorithm>
#include <utility>

#include "server/config/eviction_policy.h"
#include "server/tls/tls_contexts.h"

namespace varve {

ServerState::ServerState(Store* the_store, ServerConfig settings, ServerProgram program,
                         const CommandCatalog* commands)
    : store(the_store),
      options(settings.server),
      groups_gather(settings.engine.group_max_delay.count() > 0),
      live(options),
      configuration(program.given.value_or(settings), settings, std::move(program.config_file)),
      shut_down(std::move(program.shut_down)),
      restart(std::move(program.restart)),
      tls(program.tls != nullptr ? std::move(program.tls) : std::make_shared<TlsContexts>()),
      clients(commands, options),
      statistics(commands->command_count(), static_cast<size_t>(std::max(options.io_threads, 1))),
      disk(program.disk),
      store_waits(store->capabilities().remote, settings.store_deadline) {
  last_save.changes = store->ChangeCount();
  SetDataLimit(options);
  SetAccess(options);
  SetTrackedKeys(options.tracking_max_keys);
  SetSlowLog(options);
}

void ServerState::SetAccess(const ServerOptions& wanted) {
  clients.users.set_all_channels(wanted.acl_all_channels);
  clients.denials.set_max_entries(wanted.acl_log_entries);
}

void ServerState::SetDataLimit(const ServerOptions& wanted) {
  store->SetDataLimit(wanted.max_memory);
  const std::optional<EvictionRule> rule = ParseEvictionPolicy(wanted.max_memory_policy);
  evictor.SetDatabases(rule.value_or(EvictionRule()), wanted.max_memory);
}

absl::Status ServerState::SetDiskLimit(uint64_t bytes) {
  if ((disk == nullptr) != (bytes == 0)) {
    return absl::FailedPreconditionError(
        "whether the directory is bounded is decided when the server starts");
  }
  return disk != nullptr ? disk->SetLimit(bytes) : absl::OkStatus();
}

absl::Status ServerState::SetTls(const ServerOptions& wanted) { return tls->Use(wanted.tls); }

void ServerState::SetSlowLog(const ServerOptions& wanted) {
  statistics.slow_log.set_threshold_micros(wanted.slow_log_micros);
  statistics.slow_log.set_max_entries(wanted.slow_log_entries);
}

void ServerState::ApplySyncReplicas(bool begins) {
  for_followers.gate.SetReplicas(replication.follows() ? 0 : live.sync_replicas.load(), begins);
  for_followers.gate.Update();
  calls.release_replies();
}

void ServerState::ResetStatistics() {
  statistics.Reset();
  clients.memory.ResetStatistics();
  evictor.ResetStatistics();
  replication.counts.full = replication.counts.partial_ok = replication.counts.partial_err = 0;
}

}  // namespace varve
