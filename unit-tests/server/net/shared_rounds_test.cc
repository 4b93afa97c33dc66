// Rounds of an I/O thread that helpers take part in: replies stay right and in order, and
// connections may go at any moment.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr int kSharedKeys = 500;
constexpr int kClients = 8;
constexpr int kReadsAPipeline = 10;

// Runs clients side by side, on a server that takes its keys for dear, so that rounds of a few
// batches are worth sharing.
class SharedRoundsTest : public ::testing::Test {
 protected:
  SharedRoundsTest() : server_(Options()) {
    const std::unique_ptr<Client> client = server_.Connect();
    for (int i = 0; i < kSharedKeys; ++i) EXPECT_TRUE(client->Put(Key(i), Value(i)).ok());
    pooled_before_ = server_.state().statistics.batches_pooled.load();
  }

  static ServerOptions Options() {
    ServerOptions options;
    options.io_threads = 1;
    options.threads = 2;
    return options;
  }
  static std::string Key(int i) { return "key:" + std::to_string(i); }
  static std::string Value(int i) {
    return std::string(static_cast<size_t>(i % 100), 'v') + std::to_string(i);
  }

  // Batches that helpers took, but for those that a slow machine (a sanitizer) makes worth a worker
  // by themselves.
  uint64_t Shared() const {
    return server_.state().statistics.batches_pooled.load() - pooled_before_;
  }

  // Sends a pipeline and checks its replies; false when the server has closed the connection.
  static bool Converse(RawConnection* connection, std::mt19937* random) {
    std::string requests, replies;
    for (int i = 0; i < kReadsAPipeline; ++i) {
      const int key = static_cast<int>((*random)() % kSharedKeys);
      requests += Resp({"GET", Key(key)});
      replies += "$" + std::to_string(Value(key).size()) + "\r\n" + Value(key) + "\r\n";
      if (i == kReadsAPipeline / 2) {
        requests += Resp({"ECHO", "e" + std::to_string(key)}) + Resp({"GET", "none"});
        replies += "$" + std::to_string(std::to_string(key).size() + 1) + "\r\ne" +
                   std::to_string(key) + "\r\n$-1\r\n";
      }
    }
    if (!connection->Send(requests)) return false;
    const std::string received = connection->Receive(replies.size());
    if (connection->closed()) return false;
    EXPECT_EQ(received, replies);
    return received == replies;
  }

  // Until `done`, or for a minute. Meanwhile nobody measures that keys are cheap.
  void RunClients(const std::function<void(int client, const std::atomic<bool>& stop)>& body,
                  const std::function<bool()>& done) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> clients;
    for (int i = 0; i < kClients; ++i) clients.emplace_back([&, i] { body(i, stop); });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!done() && std::chrono::steady_clock::now() < deadline) {
      server_.server().state().key_costs.read.Measured(kInlineKeyNanos - 500, 1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    stop = true;
    for (std::thread& client : clients) client.join();
  }

  TestServer server_;
  uint64_t pooled_before_ = 0;
};

TEST_F(SharedRoundsTest, RepliesAreRightAndInOrder) {
  RunClients(
      [&](int client, const std::atomic<bool>& stop) {
        RawConnection connection(server_.port());
        std::mt19937 random(static_cast<unsigned>(client));
        while (!stop) ASSERT_TRUE(Converse(&connection, &random));
      },
      [&] { return Shared() >= 300; });
  EXPECT_GE(Shared(), 300u);
}

TEST_F(SharedRoundsTest, ConnectionsMayBeKilledAndVanishAndTheServerStop) {
  std::atomic<uint64_t> killed{0};
  const auto talk = [&](int client, const std::atomic<bool>& stop) {
    std::mt19937 random(static_cast<unsigned>(client));
    const uint16_t port = server_.port();
    while (!stop) {
      RawConnection connection(port);
      for (int i = 0; i < 50 && !stop; ++i) {
        if (Converse(&connection, &random)) continue;
        ++killed;
        break;
      }
      if (client == 1) {  // with replies under way
        connection.Send(Resp({"GET", Key(1)}) + Resp({"GET", Key(2)}));
        connection.Vanish();
      }
    }
  };
  const auto kill = [&](const std::atomic<bool>& stop) {
    const std::unique_ptr<Client> client = server_.Connect();
    while (!stop) {
      ASSERT_TRUE(client->Call({"CLIENT", "KILL", "TYPE", "normal"}).ok());  // all but itself
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  RunClients([&](int client,
                 const std::atomic<bool>& stop) { client == 0 ? kill(stop) : talk(client, stop); },
             [&] { return Shared() >= 300 && killed >= 30; });
  EXPECT_GE(Shared(), 300u);
  EXPECT_GE(killed, 30u);

  // And under load the end.
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < kClients; ++i)
    connections.push_back(std::make_unique<RawConnection>(server_.port()));
  std::string requests;
  for (int i = 0; i < 2000; ++i) requests += Resp({"GET", Key(i % kSharedKeys)});
  for (const auto& connection : connections) ASSERT_TRUE(connection->Send(requests));
  server_.Stop();
}

}  // namespace
}  // namespace varve
