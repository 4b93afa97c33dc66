// Two servers over one store over HBase, whose tables are in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "db/hbase/hbase_store.h"
#include "db/hbase/row_codec.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/store_needs.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/tables_in_memory.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawConnection;
using testing::Resp;
using ::testing::StartsWith;

constexpr size_t kMaxValue = 16u << 10;

class HbaseServersTest : public ::testing::Test {
 protected:
  struct Node {
    std::unique_ptr<HbaseStore> store;
    std::unique_ptr<Server> server;
    std::unique_ptr<Client> client;
  };

  HbaseServersTest() {
    for (Node& node : nodes_) {
      HbaseStoreOptions options;
      options.beat = std::chrono::milliseconds(5);
      options.max_value_size = kMaxValue;
      absl::StatusOr<std::unique_ptr<HbaseStore>> store =
          HbaseStore::Open(std::make_unique<testing::ClientInMemory>(&tables_), options);
      EXPECT_TRUE(store.ok()) << store.status();
      node.store = *std::move(store);
      absl::StatusOr<std::unique_ptr<Server>> server =
          Server::Start(node.store.get(), {.store = StoreKind::kHbase, .server = {.port = 0}}, {});
      EXPECT_TRUE(server.ok()) << server.status();
      node.server = *std::move(server);
      node.client = Connect(node);
    }
  }
  ~HbaseServersTest() override {
    for (Node& node : nodes_) node.server->Stop();
  }

  static std::unique_ptr<Client> Connect(const Node& node) {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect("127.0.0.1", node.server->port(), std::chrono::seconds(60));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  std::string Do(size_t node, const std::vector<std::string>& request) {
    return testing::Ask(*nodes_[node].client, request);
  }
  // Both clients work in a namespace whose keys have groups.
  void UseUsers() {
    ASSERT_EQ(Do(0, {"NAMESPACE", "CREATE", "users", "GROUP", ":"}), "OK");
    for (size_t node = 0; node < 2; ++node)
      ASSERT_EQ(Do(node, {"NAMESPACE", "USE", "users"}), "OK");
  }

  testing::TablesInMemory tables_;
  std::array<Node, 2> nodes_;
};

TEST_F(HbaseServersTest, WhatOneHasWrittenTheOtherReads) {
  EXPECT_EQ(Do(0, {"SET", "k", "1"}), "OK");
  EXPECT_EQ(Do(1, {"INCR", "k"}), "2");
  EXPECT_EQ(Do(0, {"GET", "k"}), "2");
  EXPECT_EQ(Do(1, {"DEL", "k", "missing"}), "1");
  EXPECT_EQ(Do(0, {"EXISTS", "k"}), "0");
}

TEST_F(HbaseServersTest, GroupsAreTheSameAtBoth) {
  UseUsers();
  EXPECT_EQ(Do(0, {"MSET", "a:1", "1", "a:2", "2"}), "OK");
  EXPECT_EQ(Do(1, {"SET", "b:1", "3"}), "OK");
  for (size_t node = 0; node < 2; ++node)
    EXPECT_THAT(Do(node, {"MSET", "a:1", "x", "b:1", "x"}), StartsWith("!CROSSGROUP"));
  EXPECT_EQ(Do(1, {"MGET", "b:1", "a:1", "a:2", "a:3"}), "(3 1 2 nil)");
  EXPECT_EQ(Do(1, {"DEL", "a:2", "b:1", "a:1", "a:3"}), "3");
  EXPECT_EQ(Do(0, {"DBSIZE"}), "0");
}

TEST_F(HbaseServersTest, CommandsDoWhatTheTableSays) {
  testing::ExpectWhatTheTableSays(*nodes_[0].client, nodes_[0].store->capabilities());
}

TEST_F(HbaseServersTest, EverythingIsSavedAtAnyTime) {
  ASSERT_EQ(Do(0, {"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do(0, {"SAVE"}), "OK");
  EXPECT_EQ(Do(0, {"BGSAVE"}), "Background saving started");
  EXPECT_EQ(Do(0, {"BGREWRITEAOF"}), "Background append only file rewriting started");
}

TEST_F(HbaseServersTest, NoServerBoundsTheDataOfAll) {
  for (const std::vector<std::string>& setting : std::vector<std::vector<std::string>>{
           {"maxmemory", "1mb"}, {"maxmemory-policy", "allkeys-lru"}, {"max-disk-bytes", "1gb"}}) {
    EXPECT_THAT(Do(0, {"CONFIG", "SET", setting[0], setting[1]}), HasSubstr("no server can bound"));
  }
  EXPECT_EQ(Do(0, {"CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction"}), "OK");
  EXPECT_EQ(Do(0, {"CONFIG", "GET", "maxmemory"}), "(maxmemory 0)");
}

TEST_F(HbaseServersTest, AValueThatIsRefusedTakesNoOtherWithIt) {
  const std::string large(kMaxValue + 1, 'v');
  for (const bool large_first : {true, false}) {
    RawConnection connection(nodes_[0].server->port());
    ASSERT_TRUE(connection.Send(Resp({"SET", "k", large_first ? large : "small"}) +
                                Resp({"SET", "k", large_first ? "small" : large}) +
                                Resp({"QUIT"})));
    const std::string replies = connection.ReceiveAll();
    const std::string error =
        "-ERR a value of 16385 bytes: this server's store keeps at most 16384 "
        "(--hbase-max-value)\r\n";
    EXPECT_EQ(replies, (large_first ? error + "+OK\r\n" : "+OK\r\n" + error) + "+OK\r\n");
    EXPECT_EQ(Do(1, {"GET", "k"}), "small");
  }
}

TEST_F(HbaseServersTest, AKeyThatIsRefusedTakesNoOtherWithIt) {
  const std::string longest(kMaxHbaseKeySize, 'k'), longer = longest + 'k';
  RawConnection connection(nodes_[0].server->port());
  ASSERT_TRUE(connection.Send(
      Resp({"SET", "before", "1"}) + Resp({"SET", longer, "v"}) + Resp({"SET", longest, "v"}) +
      Resp({"GET", longer}) + Resp({"INCR", longer}) + Resp({"EXISTS", longer, longest}) +
      Resp({"DEL", longer, longest}) + Resp({"SET", "behind", "2"}) + Resp({"QUIT"})));
  const std::string error =
      "-ERR a key of 32764 bytes: this server's store keeps keys of at most 32763\r\n";
  EXPECT_EQ(connection.ReceiveAll(),
            "+OK\r\n" + error + "+OK\r\n$-1\r\n" + error + ":1\r\n:1\r\n+OK\r\n+OK\r\n");
  EXPECT_EQ(Do(1, {"MGET", "before", "behind"}), "(1 2)");
}

TEST_F(HbaseServersTest, OnlyTheKeysOfARegionThatIsAwayAreUnavailable) {
  for (const char* key : {"a", "b", "z"}) ASSERT_EQ(Do(0, {"SET", key, "1"}), "OK");
  {
    const std::lock_guard lock(tables_.mutex);
    tables_.borders = {RowPrefix(1, 0xff) + "m"};
    tables_.dead_regions = {1};
  }
  RawConnection connection(nodes_[1].server->port());
  ASSERT_TRUE(connection.Send(Resp({"GET", "a"}) + Resp({"GET", "z"}) + Resp({"GET", "b"}) +
                              Resp({"MGET", "a", "z", "b"}) + Resp({"SET", "a", "2"}) +
                              Resp({"SET", "z", "2"}) + Resp({"QUIT"})));
  const std::string one = "$1\r\n1\r\n";
  const std::string text = "-UNAVAILABLE HBase did not answer within the time that a command has";
  const std::string error = text + "\r\n";
  EXPECT_EQ(connection.ReceiveAll(), one + error + one + "*3\r\n" + one + error + one + "+OK\r\n" +
                                         text + "; nothing was written\r\n" + "+OK\r\n");
  EXPECT_EQ(Do(1, {"EXISTS", "a", "b"}), "2");
  EXPECT_THAT(Do(1, {"EXISTS", "a", "z"}), StartsWith("!UNAVAILABLE"));
  EXPECT_THAT(Do(1, {"DEL", "b", "z"}), StartsWith("!UNAVAILABLE"));
  EXPECT_EQ(Do(0, {"MGET", "a", "b"}), "(2 nil)");
}

TEST_F(HbaseServersTest, ADeletionThatFailsTellsThatItMayHaveDeletedOtherKeys) {
  for (const char* key : {"a", "b", "c", "z"}) ASSERT_EQ(Do(0, {"SET", key, "1"}), "OK");
  {
    const std::lock_guard lock(tables_.mutex);
    tables_.borders = {RowPrefix(1, 0xff) + "m"};
    tables_.dead_regions = {1};
  }
  const auto tells = HasSubstr("; other keys of the command may have been deleted");
  EXPECT_THAT(Do(1, {"DEL", "z"}), AllOf(StartsWith("!UNAVAILABLE"), Not(tells)));
  EXPECT_THAT(Do(1, {"DEL", "a", "z"}), AllOf(StartsWith("!UNAVAILABLE"), tells));
  // For a client that tracks, commands are executed one after the other.
  EXPECT_THAT(Do(1, {"HELLO", "3"}), StartsWith("("));
  EXPECT_EQ(Do(1, {"CLIENT", "TRACKING", "ON", "NOLOOP"}), "OK");
  EXPECT_THAT(Do(1, {"DEL", "z"}), AllOf(StartsWith("!UNAVAILABLE"), Not(tells)));
  EXPECT_THAT(Do(1, {"DEL", "b", "z"}), AllOf(StartsWith("!UNAVAILABLE"), tells));
  EXPECT_THAT(Do(1, {"DELRANGE", "-", "+"}), AllOf(StartsWith("!UNAVAILABLE"), tells));
  EXPECT_EQ(Do(0, {"EXISTS", "a", "b", "c"}), "0");
}

// What is left of a deleted key, until it is removed, keeps nobody from writing.
TEST_F(HbaseServersTest, ATransactionReadsKeysThatAreGone) {
  UseUsers();
  ASSERT_EQ(Do(0, {"MSET", "a:n", "7", "a:m", "7"}), "OK");
  ASSERT_EQ(Do(0, {"PEXPIREAT", "a:m", "1"}), "1");
  ASSERT_EQ(Do(1, {"DEL", "a:n"}), "1");
  for (const std::string key : {"a:n", "a:m", "a:never"}) {
    EXPECT_EQ(Do(0, {"WATCH", key}), "OK");
    EXPECT_EQ(Do(0, {"MULTI"}), "OK");
    EXPECT_EQ(Do(0, {"INCR", key}), "QUEUED");
    EXPECT_EQ(Do(0, {"GET", key}), "QUEUED");
    EXPECT_EQ(Do(0, {"EXEC"}), "(1 1)") << key;
    // One that somebody else has made and deleted meanwhile was written.
    ASSERT_EQ(Do(1, {"DEL", key}), "1");
    EXPECT_EQ(Do(0, {"WATCH", key}), "OK");
    ASSERT_EQ(Do(1, {"SET", key, "v"}), "OK");
    ASSERT_EQ(Do(1, {"DEL", key}), "1");
    EXPECT_EQ(Do(0, {"MULTI"}), "OK");
    EXPECT_EQ(Do(0, {"SET", key, "lost"}), "QUEUED");
    EXPECT_EQ(Do(0, {"EXEC"}), "nil") << key;
  }
}

TEST_F(HbaseServersTest, TransactionsOfManyClientsAreAllCounted) {
  constexpr int kClients = 3, kTimes = 15;
  UseUsers();
  std::vector<std::thread> threads;
  for (Node& node : nodes_) {
    for (int i = 0; i < kClients; ++i) {
      threads.emplace_back([&node] {
        const std::unique_ptr<Client> client = Connect(node);
        EXPECT_EQ(testing::Ask(*client, {"NAMESPACE", "USE", "users"}), "OK");
        for (int time = 0; time < kTimes; ++time) {
          testing::Ask(*client, {"MULTI"});
          testing::Ask(*client, {"INCR", "a:1"});
          testing::Ask(*client, {"INCR", "a:2"});
          EXPECT_THAT(testing::Ask(*client, {"EXEC"}), StartsWith("("));
        }
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  const std::string all = std::to_string(2 * kClients * kTimes);
  EXPECT_EQ(Do(1, {"MGET", "a:1", "a:2"}), "(" + all + " " + all + ")");
}

}  // namespace
}  // namespace varve
