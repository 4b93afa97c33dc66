// A move from a Redis by commands alone: REPLICAOF, INFO, REPLICAOF NO ONE.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/following/redis_server.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::RedisServer;
using testing::TestServer;

class FollowRedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    redis_ = std::make_unique<RedisServer>();
    client_ = redis_->Connect();
    ASSERT_NE(client_, nullptr) << redis_->log();
    server_ = std::make_unique<TestServer>();
    varve_ = server_->Connect();
  }
  void TearDown() override { varve_.reset(); }

  // The value of a line of INFO replication.
  static std::string Info(Client& client, const std::string& name) {
    const std::string info = "\n" + Ask(client, {"INFO", "replication"});
    const size_t at = info.find("\n" + name + ":");
    if (at == std::string::npos) return "(none)";
    const size_t begin = at + name.size() + 2;
    return info.substr(begin, info.find('\r', begin) - begin);
  }
  std::string Follow() {
    return Ask(*varve_, {"REPLICAOF", "127.0.0.1", std::to_string(redis_->port())});
  }
  bool ComesUp() {
    return Eventually([&] { return Info(*varve_, "master_link_status") == "up"; });
  }
  bool CatchesUp() {
    return Eventually(
        [&] { return Info(*varve_, "slave_repl_offset") == Info(*client_, "master_repl_offset"); });
  }

  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Client> varve_;
};

TEST_F(FollowRedisTest, AMoveWithoutDowntime) {
  EXPECT_EQ(Ask(*client_, {"SET", "a", "1"}), "OK");
  EXPECT_EQ(Ask(*client_, {"RPUSH", "list", "1"}), "1");
  EXPECT_EQ(Follow(), "OK");
  ASSERT_TRUE(ComesUp()) << Info(*varve_, "master_link_error");
  EXPECT_EQ(Info(*varve_, "role"), "slave");
  EXPECT_EQ(Info(*varve_, "redis_skipped_list"), "1");
  EXPECT_EQ(Info(*varve_, "redis_skipped_keys"), "list list");
  EXPECT_EQ(Info(*varve_, "redis_replid"), Info(*client_, "master_replid"));
  // The Redis writes here, and nobody else.
  EXPECT_EQ(Ask(*varve_, {"SET", "own", "1"}).substr(0, 9), "!READONLY");
  EXPECT_EQ(Ask(*client_, {"INCR", "a"}), "2");
  EXPECT_EQ(Ask(*client_, {"CLIENT", "PAUSE", "60000", "WRITE"}), "OK");
  ASSERT_TRUE(CatchesUp());
  EXPECT_EQ(Ask(*varve_, {"REPLICAOF", "NO", "ONE"}), "OK");
  EXPECT_EQ(Info(*varve_, "role"), "master");
  EXPECT_EQ(Ask(*varve_, {"GET", "a"}), "2");
  EXPECT_EQ(Ask(*varve_, {"INCR", "a"}), "3");
}

TEST_F(FollowRedisTest, HoldsAfterARestart) {
  EXPECT_EQ(Ask(*client_, {"SET", "a", "1"}), "OK");
  EXPECT_EQ(Follow(), "OK");
  ASSERT_TRUE(ComesUp()) << Info(*varve_, "master_link_error");
  varve_.reset();
  server_->Stop();
  EXPECT_EQ(Ask(*client_, {"INCR", "a"}), "2");
  server_->Start();
  varve_ = server_->Connect();
  ASSERT_TRUE(ComesUp()) << Info(*varve_, "master_link_error");
  ASSERT_TRUE(CatchesUp());
  EXPECT_EQ(Ask(*varve_, {"GET", "a"}), "2");
  EXPECT_EQ(Ask(*varve_, {"SET", "own", "1"}).substr(0, 9), "!READONLY");
}

}  // namespace
}  // namespace varve
