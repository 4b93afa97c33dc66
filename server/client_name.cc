#include "server/client_name.h"

#include <algorithm>

namespace varve {

bool IsPlainClientName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

void RenameClient(ClientState* client, std::string_view name) {
  absl::MutexLock lock(&client->link.names_mutex);
  client->name.assign(name);
}

bool SetClientName(CommandContext& context, std::string_view name) {
  if (!IsPlainClientName(name)) {
    context.reply.Error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  RenameClient(&context.client, name);
  return true;
}

}  // namespace varve
