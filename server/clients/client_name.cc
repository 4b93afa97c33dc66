#include "server/clients/client_name.h"

#include <algorithm>

#include "fmt/format.h"

namespace varve {

bool IsClientName(CommandContext& context, std::string_view what, std::string_view name) {
  if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; })) {
    context.reply.Error(
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", what));
    return false;
  }
  if (name.size() > kMaxClientName) {
    context.reply.Error(
        fmt::format("ERR {} cannot have more than {} bytes.", what, kMaxClientName));
    return false;
  }
  return true;
}

void RenameClient(ClientState* client, std::string_view name) {
  absl::MutexLock lock(&client->link.names_mutex);
  client->name.assign(name);
}

bool SetClientName(CommandContext& context, std::string_view name) {
  if (!IsClientName(context, "Client names", name)) return false;
  RenameClient(&context.client, name);
  return true;
}

}  // namespace varve
