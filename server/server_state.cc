#include "server/server_state.h"

#include "server/command_table.h"

namespace varve {

ServerState::ServerState(Store* the_store, ServerOptions the_options,
                         std::vector<std::pair<std::string, std::string>> the_settings)
    : store(the_store),
      options(std::move(the_options)),
      settings(std::move(the_settings)),
      command_statistics(AllCommands().size()) {}

}  // namespace varve
