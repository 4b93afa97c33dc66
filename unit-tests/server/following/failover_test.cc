// FAILOVER: a follower takes over from its primary, with everything that was acknowledged.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "fmt/format.h"
#include "unit-tests/server/following/redis_server.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::RedisServer;
using testing::ServerProcess;
using testing::TempDir;
using Words = std::vector<std::string>;

class FailoverNode {
 public:
  FailoverNode(const TempDir& directory, const std::string& name)
      : port_(RedisServer::FreePort()),
        process_(VARVE_SERVER_MAIN, directory.File(name), {fmt::format("--port={}", port_)}) {
    EXPECT_NE(process_.port(), 0) << process_.log();
  }

  std::string port() const { return fmt::to_string(port_); }
  testing::Process& process() { return process_.process(); }
  std::unique_ptr<Client> Connect() const {
    absl::StatusOr<std::unique_ptr<Client>> client =
        Client::Connect({.host = "127.0.0.1",
                         .port = port_,
                         .timeout = std::chrono::seconds(60),
                         .reconnect_for = std::chrono::milliseconds(0)});
    return client.ok() ? *std::move(client) : nullptr;
  }
  std::string Do(const Words& words) const {
    const std::unique_ptr<Client> client = Connect();
    return client == nullptr ? "(lost)" : Ask(*client, words);
  }
  std::string Info(const std::string& name) const {
    const std::string info = Do({"INFO", "replication"});
    const size_t at = info.find("\n" + name + ":");
    if (at == std::string::npos) return "(none)";
    const size_t begin = at + name.size() + 2;
    return info.substr(begin, info.find('\r', begin) - begin);
  }
  bool Follow(const FailoverNode& primary) const {
    return Do({"REPLICAOF", "127.0.0.1", primary.port()}) == "OK" &&
           Eventually([&] { return Info("master_link_status") == "up"; });
  }

 private:
  const uint16_t port_;
  ServerProcess process_;
};

class FailoverTest : public ::testing::Test {
 protected:
  // Returns once no failover is under way.
  bool Ended() {
    return Eventually([&] { return a_.Info("master_failover_state") == "no-failover"; });
  }
  bool IsOnline(const FailoverNode& primary, const FailoverNode& follower) {
    return Eventually([&] {
      return primary.Do({"ROLE"}).find("(127.0.0.1 " + follower.port() + " ") != std::string::npos;
    });
  }

  TempDir directory_;
  FailoverNode a_{directory_, "a"};
};

TEST_F(FailoverTest, RefusalsHaveRedisWords) {
  EXPECT_EQ(a_.Do({"FAILOVER"}), "!ERR FAILOVER requires connected replicas.");
  EXPECT_EQ(a_.Do({"FAILOVER", "ABORT"}), "!ERR No failover in progress.");
  EXPECT_EQ(a_.Do({"FAILOVER", "x"}), "!ERR syntax error");
  EXPECT_EQ(a_.Do({"FAILOVER", "TO", "h"}), "!ERR syntax error");
  EXPECT_EQ(a_.Do({"FAILOVER", "TO", "h", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(a_.Do({"FAILOVER", "TIMEOUT", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(a_.Do({"FAILOVER", "TIMEOUT", "0"}), "!ERR FAILOVER timeout must be greater than 0");
  EXPECT_EQ(a_.Do({"FAILOVER", "ABORT", "TO", "h", "7"}), "!ERR syntax error");
  EXPECT_EQ(a_.Do({"FAILOVER", "TIMEOUT", "5", "TIMEOUT", "6"}), "!ERR syntax error");
  const FailoverNode b(directory_, "b");
  ASSERT_TRUE(b.Follow(a_));
  ASSERT_TRUE(IsOnline(a_, b));
  EXPECT_EQ(b.Do({"FAILOVER"}), "!ERR FAILOVER is not valid when server is a replica.");
  EXPECT_EQ(a_.Do({"FAILOVER", "FORCE"}),
            "!ERR FAILOVER with force option requires both a timeout and target HOST and IP.");
  EXPECT_EQ(a_.Do({"FAILOVER", "TO", "127.0.0.1", "1"}),
            "!ERR FAILOVER target HOST and PORT is not a replica.");
  EXPECT_EQ(a_.Info("role"), "master");
}

TEST_F(FailoverTest, AFollowerTakesOverAndTheOldPrimaryFollowsIt) {
  const FailoverNode b(directory_, "b");
  ASSERT_TRUE(b.Follow(a_));
  ASSERT_TRUE(IsOnline(a_, b));
  EXPECT_EQ(a_.Do({"SET", "before", "1"}), "OK");
  EXPECT_EQ(a_.Do({"FAILOVER"}), "OK");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(a_.Info("role"), "slave");
  EXPECT_EQ(a_.Info("master_port"), b.port());
  EXPECT_EQ(b.Info("role"), "master");
  EXPECT_EQ(a_.Do({"SET", "k", "v"}), "!READONLY You can't write against a read only replica.");
  EXPECT_EQ(b.Do({"GET", "before"}), "1");
  EXPECT_EQ(b.Do({"SET", "after", "2"}), "OK");
  EXPECT_TRUE(Eventually([&] { return a_.Do({"GET", "after"}) == "2"; }));
  EXPECT_NE(b.Do({"INFO", "stats"}).find("sync_full:0\r"), std::string::npos)
      << "the old primary went on where it was";
}

// Writers write all the time, each on to the server that takes writes.
TEST_F(FailoverTest, NothingAcknowledgedIsLostUnderLoad) {
  const FailoverNode b(directory_, "b");
  ASSERT_TRUE(b.Follow(a_));
  ASSERT_TRUE(IsOnline(a_, b));
  constexpr int kWriters = 4;
  std::atomic<bool> stop{false};
  std::atomic<int> written_since{0};
  std::vector<int> acknowledged(kWriters, 0);
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      std::unique_ptr<Client> clients[] = {a_.Connect(), b.Connect()};
      size_t at = 0;
      for (int i = 1; !stop; ++i) {
        while (!stop && Ask(*clients[at], {"SET", fmt::format("w{}:{}", w, i), "v"}) != "OK")
          at = 1 - at;
        if (stop) break;
        acknowledged[static_cast<size_t>(w)] = i;
        if (at == 1) ++written_since;
      }
    });
  }
  EXPECT_EQ(a_.Do({"FAILOVER", "TO", "127.0.0.1", b.port(), "TIMEOUT", "60000"}), "OK");
  EXPECT_TRUE(Ended());
  EXPECT_EQ(b.Info("role"), "master");
  EXPECT_TRUE(Eventually([&] { return written_since > 100; }));
  stop = true;
  for (std::thread& writer : writers) writer.join();
  const std::unique_ptr<Client> client = b.Connect();
  for (int w = 0; w < kWriters; ++w) {
    int missing = 0;
    for (int i = 1; i <= acknowledged[static_cast<size_t>(w)]; ++i)
      missing += Ask(*client, {"EXISTS", fmt::format("w{}:{}", w, i)}) == "1" ? 0 : 1;
    EXPECT_EQ(missing, 0) << "of writer " << w;
  }
  EXPECT_NE(a_.Do({"INFO", "stats"}).find("diverged_operations:0\r"), std::string::npos);
}

// A follower that stands still has not everything.
TEST_F(FailoverTest, WithoutAFollowerThatHasEverythingThePrimaryStaysOne) {
  FailoverNode b(directory_, "b");
  ASSERT_TRUE(b.Follow(a_));
  ASSERT_TRUE(IsOnline(a_, b));
  b.process().Kill(SIGSTOP);
  EXPECT_EQ(a_.Do({"SET", "k", "1"}), "OK");
  EXPECT_EQ(a_.Do({"FAILOVER", "TIMEOUT", "200"}), "OK");
  EXPECT_EQ(a_.Do({"SET", "k", "2"}), "OK") << "the write waited";
  ASSERT_TRUE(Ended());
  EXPECT_EQ(a_.Info("role"), "master");

  EXPECT_EQ(a_.Do({"FAILOVER"}), "OK");
  EXPECT_EQ(a_.Info("master_failover_state"), "waiting-for-sync");
  EXPECT_EQ(a_.Do({"FAILOVER"}), "!ERR FAILOVER already in progress.");
  EXPECT_EQ(a_.Do({"REPLICAOF", "NO", "ONE"}), "!ERR REPLICAOF not allowed while failing over.");
  EXPECT_EQ(a_.Do({"FAILOVER", "ABORT"}), "OK");
  ASSERT_TRUE(Ended());
  EXPECT_EQ(a_.Info("role"), "master");
  EXPECT_EQ(a_.Do({"SET", "k", "3"}), "OK");
  b.process().Kill(SIGCONT);
  EXPECT_TRUE(Eventually([&] { return b.Do({"GET", "k"}) == "3"; })) << "it still follows";
}

}  // namespace
}  // namespace varve
