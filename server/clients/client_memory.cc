#include "server/clients/client_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "server/clients/client_state.h"
#include "spdlog/spdlog.h"

namespace varve {
namespace {

struct Holder {
  bool spared;  // CLIENT NO-EVICT: goes last
  size_t bytes;
  uint64_t id;
};

// Those that may be closed; `*leaving`: what is held by those that were already asked to.
std::vector<Holder> FindHolders(const ClientRegistry& registry, size_t* leaving) {
  std::vector<Holder> holders;
  registry.ForEach([&](const ClientState& client) {
    const ClientLink& link = client.link;
    const size_t bytes = link.memory.load(std::memory_order_relaxed) + link.mailbox.bytes();
    if (link.mailbox.close_requested()) {
      *leaving += bytes;
    } else if (bytes > ClientMemory::kNothing) {
      holders.push_back({link.no_evict.load(std::memory_order_relaxed), bytes, client.id});
    }
  });
  return holders;
}

}  // namespace

Mailbox::Message ClientMemory::Count(std::string text) {
  const size_t size = text.size();
  Change(0, size);
  return {new std::string(std::move(text)), [this, size](const std::string* counted) {
            Change(size, 0);
            delete counted;
          }};
}

void ClientMemory::Evict(size_t limit, const ClientRegistry& registry) {
  if (!evicting_.TryLock()) return;
  size_t leaving = 0;
  std::vector<Holder> holders = FindHolders(registry, &leaving);
  std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return a.spared != b.spared ? b.spared : a.bytes > b.bytes;
  });
  // A bit lower than asked for, so that the next bytes don't bring the next search.
  const size_t goal = limit - limit / 16 + leaving;
  size_t held = bytes();
  absl::flat_hash_set<uint64_t> chosen;
  for (const Holder& holder : holders) {
    if (held <= goal) break;
    held -= std::min(held, holder.bytes);
    chosen.insert(holder.id);
  }
  if (!chosen.empty()) {
    registry.ForEach([&](ClientState& client) {
      if (!chosen.contains(client.id)) return;
      spdlog::warn(
          "Client {} at {} holds {} bytes, and all clients more than --maxmemory-clients: its "
          "connection is closed",
          client.id, client.address, client.link.memory.load() + client.link.mailbox.bytes());
      evicted_.fetch_add(1, std::memory_order_relaxed);
      client.link.mailbox.RequestClose();
    });
  }
  evicting_.Unlock();
}

}  // namespace varve
