#include "server/execution/request_account.h"

namespace varve {

void AccountSlowRequest(ServerState* server, const ClientState& client, const Command* command,
                        Arguments arguments, uint64_t nanos) {
  const uint32_t flags = command != nullptr ? command->flags : 0;
  constexpr uint32_t kExec = kTransactionCommand | kSlowCommand;
  if ((flags & kExec) == kExec) return;  // what it executed is told of by itself
  const bool has_secrets = (flags & kSecretArguments) != 0;
  server->statistics.slow_log.Add(nanos, has_secrets ? arguments.first(1) : arguments,
                                  client.address, client.name);
}

void AccountReply(ServerState* server, const Command* command, std::string_view reply) {
  if (!reply.starts_with('-')) [[likely]]
    return;
  server->statistics.errors.Replied(reply);
  if (command != nullptr) server->statistics.commands.Failed(command->index);
}

}  // namespace varve
