#include "server/clients/client_registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "server/clients/client_state.h"

namespace varve {
namespace {

std::vector<uint64_t> Ids(const ClientRegistry& registry) {
  std::vector<uint64_t> ids;
  registry.ForEach([&](const ClientState& client) { ids.push_back(client.id); });
  return ids;
}

TEST(ClientRegistryTest, ClientsAreVisitedInTheOrderOfTheirNumbers) {
  ClientRegistry registry;
  EXPECT_TRUE(Ids(registry).empty());
  ClientState clients[3];
  for (const uint64_t id : {2u, 0u, 1u}) {
    clients[id].id = id;
    registry.Add(id, &clients[id]);
  }
  EXPECT_EQ(Ids(registry), (std::vector<uint64_t>{0, 1, 2}));
  registry.Remove(1);
  EXPECT_EQ(Ids(registry), (std::vector<uint64_t>{0, 2}));
}

TEST(ClientRegistryTest, AVisitReachesTheClientItself) {
  ClientRegistry registry;
  ClientState client;
  registry.Add(7, &client);
  registry.ForEach([](ClientState& each) { each.link.no_evict = true; });
  EXPECT_TRUE(client.link.no_evict);
}

// Whoever leaves waits for a visit that is under way, so that no visit meets a client that is gone.
TEST(ClientRegistryTest, NobodyIsVisitedWhoHasLeft) {
  constexpr int kThreads = 3, kRounds = 500;
  ClientRegistry registry;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const auto client = std::make_unique<ClientState>();
        client->id = static_cast<uint64_t>(t);
        client->link.protocol = 3;
        registry.Add(client->id, client.get());
        registry.Remove(client->id);
        client->link.protocol = 0;
      }
      --running;
    });
  }
  while (running > 0)
    registry.ForEach([](const ClientState& client) { ASSERT_EQ(client.link.protocol, 3); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Ids(registry).empty());
}

}  // namespace
}  // namespace varve
