#include "server/execution/request_account.h"

#include "util/base/assert.h"

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

void AccountRequests(ServerState* server, const ClientState& client, const RequestBatch& batch,
                     size_t first, size_t count, uint64_t nanos_each) {
  VARVE_ASSERT(count > 0 && first + count <= batch.requests.size());
  if (const Command* command = batch.requests[first].command; command != nullptr) {
    server->statistics.commands.Executed(command->index, count, nanos_each);
  }
  if (!server->statistics.slow_log.Wants(nanos_each)) [[likely]]
    return;
  for (const RequestBatch::Request& request :
       absl::MakeSpan(batch.requests).subspan(first, count)) {
    AccountSlowRequest(server, client, request.command, batch.ArgumentsOf(request), nanos_each);
  }
}

void AccountReply(ServerState* server, const Command* command, std::string_view reply) {
  if (!reply.starts_with('-')) [[likely]]
    return;
  server->statistics.errors.Replied(reply);
  if (command != nullptr) server->statistics.commands.Failed(command->index);
}

void ShowToMonitors(ServerState* server, const ClientState& client, NamespaceId space,
                    const RequestBatch& batch, size_t first, size_t count) {
  if (!server->clients.monitors.any()) [[likely]]
    return;
  VARVE_ASSERT(first + count <= batch.requests.size());
  for (size_t i = first; i < first + count; ++i) {
    const RequestBatch::Request& request = batch.requests[i];
    server->clients.monitors.Show(space, client.address, *request.command,
                                  batch.ArgumentsOf(request));
  }
}

}  // namespace varve
