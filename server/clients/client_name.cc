#include "server/clients/client_name.h"

#include <algorithm>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {

absl::Status CheckClientName(std::string_view what, std::string_view name) {
  if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; })) {
    return absl::InvalidArgumentError(
        fmt::format("{} cannot contain spaces, newlines or special characters.", what));
  }
  if (name.size() > kMaxClientName) {
    return absl::InvalidArgumentError(
        fmt::format("{} cannot have more than {} bytes.", what, kMaxClientName));
  }
  return absl::OkStatus();
}

void RenameClient(ClientState* client, std::string_view name) {
  VARVE_ASSERT(name.size() <= kMaxClientName);
  absl::MutexLock lock(&client->link.names_mutex);
  client->name.assign(name);
}

}  // namespace varve
