#include "server/clients/client_registry.h"

#include "util/base/assert.h"

namespace varve {

void ClientRegistry::Add(uint64_t id, ClientState* client) {
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(client != nullptr);
  const bool is_new = clients_.emplace(id, client).second;
  VARVE_ASSERT(is_new);
}

void ClientRegistry::Remove(uint64_t id) {
  absl::MutexLock lock(&mutex_);
  const size_t removed = clients_.erase(id);
  VARVE_ASSERT(removed == 1);
}

bool ClientRegistry::Visit(uint64_t id, const std::function<void(ClientState&)>& visit) const {
  absl::MutexLock lock(&mutex_);
  const auto found = clients_.find(id);
  if (found == clients_.end()) return false;
  visit(*found->second);
  return true;
}

void ClientRegistry::ForEach(const std::function<void(ClientState&)>& visit) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, client] : clients_) visit(*client);
}

}  // namespace varve
