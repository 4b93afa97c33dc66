// Keys move from a server with files of its own to one over HBase, whose tables are in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/hbase/hbase_store.h"
#include "fmt/format.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/tables_in_memory.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Process;
using testing::ServerProcess;
using Words = std::vector<std::string>;

constexpr size_t kMaxMovedValue = 16u << 10;

class MoveToHbaseTest : public ::testing::Test {
 protected:
  MoveToHbaseTest() {
    HbaseStoreOptions options;
    options.beat = std::chrono::milliseconds(5);
    options.max_value_size = kMaxMovedValue;
    absl::StatusOr<std::unique_ptr<HbaseStore>> store =
        HbaseStore::Open(std::make_unique<testing::ClientInMemory>(&tables_), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(store_.get(), {.server = {.port = 0}}, {});
    EXPECT_TRUE(server.ok()) << server.status();
    target_ = *std::move(server);
  }
  ~MoveToHbaseTest() override { target_->Stop(); }

  static std::unique_ptr<Client> Connect(uint16_t port, const std::string& space) {
    ClientOptions options;
    options.port = port;
    options.namespace_name = space;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  void AtSource(const std::string& space, const Words& words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    const absl::Status done = Connect(source_.port(), space)->Call(views).status();
    ASSERT_TRUE(done.ok()) << words[0] << ": " << done;
  }
  int Move(const Words& flags) {
    Words words = {fmt::format("--port={}", source_.port()), "move",
                   fmt::format("redis://127.0.0.1:{}", target_->port()),
                   "--state=" + dir_.File("state")};
    words.insert(words.end(), flags.begin(), flags.end());
    const int code = Process(VARVE_CLIENT_MAIN, words, dir_.File("out")).Wait();
    said_ = testing::ReadFile(dir_.File("out"));
    return code;
  }
  // Returns what the server has, with all that belongs to it.
  static std::string Stored(uint16_t port, const std::string& space) {
    const absl::StatusOr<Reply> reply =
        Connect(port, space)->Call({"RANGE", "-", "+", "WITHEXPIRY", "WITHMETA"});
    EXPECT_TRUE(reply.ok()) << reply.status();
    std::string text;
    if (!reply.ok()) return text;
    for (const Reply& each : reply->elements)
      text +=
          each.type == Reply::Type::kInteger ? fmt::format("{} ", each.integer) : each.text + " ";
    return text;
  }
  void ExpectEqual(const std::string& space) {
    EXPECT_EQ(Stored(target_->port(), space), Stored(source_.port(), space)) << said_;
  }

  testing::TempDir dir_;
  testing::TablesInMemory tables_;
  std::unique_ptr<HbaseStore> store_;
  std::unique_ptr<Server> target_;
  ServerProcess source_{VARVE_SERVER_MAIN, dir_.File("source")};
  std::string said_;
};

TEST_F(MoveToHbaseTest, KeysArriveWithWhatBelongsToThem) {
  AtSource("", {"NAMESPACE", "CREATE", "users", "PX", "99999999", "COMPRESS", "lz4"});
  AtSource("", {"MSET", "a", "1", "b", "2", "c", "3"});
  AtSource("users", {"SET", "user1:name", "Ada", "META", "text"});
  AtSource("users", {"SET", "user2:name", "Bob"});
  AtSource("users", {"PERSIST", "user2:name"});
  ASSERT_EQ(Move({"--until-caught-up", "--grouping=users=:"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("does not take COMPRESS lz4 of users"));
  ExpectEqual("");
  ExpectEqual("users");
  // Keys of several groups, ranges and whole databases.
  AtSource("users", {"MSET", "user1:name", "x", "user3:name", "y", "user4:name", "z"});
  AtSource("users", {"DELRANGE", "[user2", "(user4"});
  AtSource("", {"FLUSHDB"});
  AtSource("", {"SWAPDB", "0", "1"});
  AtSource("", {"SET", "b", "again"});
  ASSERT_EQ(Move({"--finish", "--verify"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("and 0 differ"));
  ExpectEqual("");
  ExpectEqual("users");
  const std::unique_ptr<Client> users = Connect(target_->port(), "users");
  EXPECT_TRUE(users->Call({"MSET", "user1:a", "1", "user1:b", "2"}).ok());
  EXPECT_THAT(users->Call({"MSET", "user1:a", "1", "user2:b", "2"}).status().message(),
              HasSubstr("CROSSGROUP"));
}

TEST_F(MoveToHbaseTest, WhatTheTargetLacksIsNamed) {
  AtSource("", {"NAMESPACE", "CREATE", "n", "MAXKEYS", "100", "KEEP", "1h"});
  AtSource("n", {"MSET", "a", "1", "large", std::string(kMaxMovedValue + 1, 'v'), "z", "1"});
  EXPECT_EQ(Move({"--finish"}), 2);
  EXPECT_THAT(said_, AllOf(HasSubstr("the target does not take KEEP 1h KEEPBYTES 0 of n"),
                           HasSubstr("--skip-options")));
  EXPECT_EQ(Move({"--finish", "--skip-options"}), 2);
  EXPECT_THAT(said_, AllOf(HasSubstr("does not take MAXKEYS 100 of n"),
                           HasSubstr("refuses the key 'large' of n"), HasSubstr("--skip-refused")));
  EXPECT_EQ(Move({"--finish", "--skip-options", "--skip-refused"}), 0) << said_;
  EXPECT_THAT(said_, HasSubstr("1 left out"));
  const auto keys = Connect(target_->port(), "n")->Range("-", "+");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->size(), 2U);
}

TEST_F(MoveToHbaseTest, AClusterHasNoFeedToMoveFrom) {
  const Words words = {fmt::format("--port={}", target_->port()), "move",
                       fmt::format("redis://127.0.0.1:{}", source_.port())};
  EXPECT_EQ(Process(VARVE_CLIENT_MAIN, words, dir_.File("out")).Wait(), 2);
  EXPECT_THAT(testing::ReadFile(dir_.File("out")),
              HasSubstr("`export` and `import` move its data"));
}

}  // namespace
}  // namespace varve
