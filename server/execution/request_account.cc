#include "server/execution/request_account.h"

namespace varve {

void AccountSlowRequest(ServerState* server, const ClientState& client, const Command* command,
                        Arguments arguments, uint64_t nanos) {
  const uint32_t flags = command != nullptr ? command->flags : 0;
  constexpr uint32_t kExec = kTransactionCommand | kSlowCommand;
  if ((flags & kExec) == kExec) return;  // what it executed is told of by itself
  const bool has_secrets = (flags & kSecretArguments) != 0;
  server->slow_log.Add(nanos, has_secrets ? arguments.first(1) : arguments, client.address,
                       client.name);
}

void AccountReply(ServerState* server, const Command* command, std::string_view reply) {
  if (!reply.starts_with('-')) [[likely]]
    return;
  server->error_statistics.Replied(reply);
  if (command != nullptr) server->command_statistics.Failed(CommandIndex(*command));
}

}  // namespace varve
