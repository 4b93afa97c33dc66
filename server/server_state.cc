#include "server/server_state.h"

#include "server/commands/command_table.h"

namespace varve {

ServerState::ServerState(Store* the_store, ServerConfig settings, ServerProgram program)
    : store(the_store),
      options(settings.server),
      groups_gather(settings.engine.group_max_delay.count() > 0),
      live(options),
      password(options.password),
      configuration(program.given.value_or(settings), settings, std::move(program.config_file)),
      shut_down(std::move(program.shut_down)),
      saved_changes(store->ChangeCount()),
      command_statistics(AllCommands().size()) {
  slow_log.set_threshold_micros(options.slow_log_micros);
  slow_log.set_max_entries(options.slow_log_entries);
}

void ServerState::ResetStatistics() {
  for (std::atomic<uint64_t>* counter :
       {&connections_received, &connections_rejected, &protocol_errors, &failed_logins, &requests,
        &batches_inline, &batches_pooled, &bytes_in, &bytes_out}) {
    counter->store(0, std::memory_order_relaxed);
  }
  hits_before_reset = keyspace_hits.Sum();
  misses_before_reset = keyspace_misses.Sum();
  client_memory.ResetStatistics();
  command_statistics.Reset();
  error_statistics.Reset();
}

}  // namespace varve
