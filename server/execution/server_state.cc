#include "server/execution/server_state.h"

#include <utility>

namespace varve {

ServerState::ServerState(Store* the_store, ServerConfig settings, ServerProgram program,
                         const CommandCatalog* commands)
    : store(the_store),
      options(settings.server),
      groups_gather(settings.engine.group_max_delay.count() > 0),
      live(options),
      configuration(program.given.value_or(settings), settings, std::move(program.config_file)),
      shut_down(std::move(program.shut_down)),
      clients(commands, options.password, options.key_events),
      statistics(commands->command_count()) {
  last_save.changes = store->ChangeCount();
  SetSlowLog(options);
}

void ServerState::SetSlowLog(const ServerOptions& wanted) {
  statistics.slow_log.set_threshold_micros(wanted.slow_log_micros);
  statistics.slow_log.set_max_entries(wanted.slow_log_entries);
}

void ServerState::ResetStatistics() {
  statistics.Reset();
  clients.memory.ResetStatistics();
}

}  // namespace varve
