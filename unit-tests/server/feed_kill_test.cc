// Readers of the change feed while the server is killed: what was acknowledged is delivered exactly
// once and in order, across any number of restarts.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::ServerProcess;
using testing::TempDir;

std::unique_ptr<Client> ConnectToPort(uint16_t port) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect("127.0.0.1", port, std::chrono::seconds(60));
  return client.ok() ? *std::move(client) : nullptr;
}

// Writes one key after the other until the server is gone.
struct FeedWriter {
  void Run(uint16_t port) {
    const std::unique_ptr<Client> client = ConnectToPort(port);
    if (client == nullptr) return;
    for (;;) {
      const std::string number = std::to_string(next++);
      const std::string one = name + number, other = name + number + "+";
      if (!client->PutAll({{one, number}, {other, number}}).ok()) return;
      acknowledged.push_back(number);
      count.fetch_add(1);
    }
  }

  std::string name;
  uint64_t next = 0;
  std::vector<std::string> acknowledged;
  std::atomic<uint64_t> count{0};
};

// Reads the feed until the server is gone, and goes on where it stopped with the next one.
struct FeedReader {
  // Returns false once the server is gone.
  bool ReadOnce(Client* client, const std::string& block) {
    const absl::StatusOr<Reply> reply =
        client->Call({"CHANGES", "SINCE", std::to_string(position), "BLOCK", block});
    if (absl::IsUnavailable(reply.status()) || absl::IsUnknown(reply.status())) return false;
    if (!reply.ok() || reply->elements.size() != 4) {
      ADD_FAILURE() << reply.status();
      return false;
    }
    for (const Reply& commit : reply->elements[3].elements) Take(commit);
    EXPECT_GE(reply->elements[1].integer, position);
    position = reply->elements[1].integer;
    got_nothing = reply->elements[3].elements.empty();
    return true;
  }
  void Run(uint16_t port) {
    const std::unique_ptr<Client> client = ConnectToPort(port);
    while (client != nullptr && ReadOnce(client.get(), "1000")) continue;
  }
  void Take(const Reply& commit) {
    EXPECT_GT(commit.elements[0].integer, last);
    last = commit.elements[0].integer;
    const std::vector<Reply>& operations = commit.elements[2].elements;
    EXPECT_EQ(operations.size(), 2u) << "a commit is never cut";
    for (const Reply& operation : operations) {
      const bool is_new =
          values.emplace(operation.elements[2].text, operation.elements[3].text).second;
      EXPECT_TRUE(is_new) << operation.elements[2].text << " came twice";
    }
  }

  int64_t position = 0;
  int64_t last = -1;
  bool got_nothing = false;
  std::map<std::string, std::string> values;
};

TEST(FeedKillTest, WhatWasAcknowledgedIsDeliveredOnce) {
  constexpr int kKills = 4;
  constexpr uint64_t kBetweenKills = 150;  // acknowledged commits of each writer
  TempDir dir;
  FeedWriter writers[2];
  writers[0].name = "a";
  writers[1].name = "b";
  FeedReader reader;
  for (int life = 0; life <= kKills; ++life) {
    ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"),
                         {"--change-retention-bytes=256MiB", "--write-buffer-size=256KiB"});
    ASSERT_NE(server.port(), 0) << server.log();
    if (life == kKills) {
      const std::unique_ptr<Client> client = ConnectToPort(server.port());
      do {
        ASSERT_TRUE(reader.ReadOnce(client.get(), "1"));
      } while (!reader.got_nothing);
      const absl::StatusOr<Client::Pairs> all = client->Range("-", "+");
      ASSERT_TRUE(all.ok()) << all.status();
      EXPECT_EQ(reader.values, (std::map<std::string, std::string>(all->begin(), all->end())));
      break;
    }
    std::vector<std::thread> threads;
    for (FeedWriter& writer : writers)
      threads.emplace_back([&writer, &server] { writer.Run(server.port()); });
    threads.emplace_back([&] { reader.Run(server.port()); });
    for (FeedWriter& writer : writers) {
      const uint64_t enough = writer.count.load() + kBetweenKills;
      EXPECT_TRUE(Eventually([&] { return writer.count.load() >= enough; }));
    }
    server.process().Kill(SIGKILL);
    server.process().Wait();
    for (std::thread& thread : threads) thread.join();
  }
  for (const FeedWriter& writer : writers) {
    for (const std::string& number : writer.acknowledged) {
      EXPECT_EQ(reader.values[writer.name + number], number);
      EXPECT_EQ(reader.values[writer.name + number + "+"], number);
    }
  }
}

}  // namespace
}  // namespace varve
