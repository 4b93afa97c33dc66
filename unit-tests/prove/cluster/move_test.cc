// Keys move from a server with files of its own to servers over the cluster, live, and back by
// export and import. What moves them, and what takes them, is killed in the middle.
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "unit-tests/prove/cluster/cluster.h"
#include "unit-tests/testing/eventually.h"

namespace varve::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr int kMovedKeys = 3000;

class ClusterMoveTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Client> ConnectTo(uint16_t port, const std::string& space = "") {
    ClientOptions options;
    options.port = port;
    options.namespace_name = space;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  int Run(const Words& words) {
    const int code = Process(VARVE_CLIENT_MAIN, words, dir_.File("out")).Wait();
    said_ = ReadFile(dir_.File("out"));
    return code;
  }
  // `to`: the server at which the keys arrive.
  Words Move(uint16_t to, Words flags) const {
    Words words = {fmt::format("--port={}", source_.port()), "move",
                   fmt::format("redis://127.0.0.1:{}", to), "--state=" + dir_.File("state"),
                   "--grouping=users=:"};
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  }
  static Client::Pairs Stored(uint16_t port, const std::string& space) {
    const absl::StatusOr<Client::Pairs> pairs = ConnectTo(port, space)->Range("-", "+");
    EXPECT_TRUE(pairs.ok()) << pairs.status();
    return pairs.ok() ? *pairs : Client::Pairs();
  }
  void Fill() {
    const std::unique_ptr<Client> client = ConnectTo(source_.port());
    ASSERT_TRUE(client->Call({"NAMESPACE", "CREATE", "users", "PX", "999999999"}).ok());
    const std::unique_ptr<Client> users = ConnectTo(source_.port(), "users");
    for (int i = 0; i < kMovedKeys; ++i) {
      const std::string key = fmt::format("user{}:name", i);
      ASSERT_TRUE(users->Call({"SET", key, std::string(500, 'v'), "META", "m"}).ok());
      if (i % 3 == 0) ASSERT_TRUE(users->Call({"PERSIST", key}).ok());
      if (i % 10 == 0) ASSERT_EQ(client->Put(key, "plain"), absl::OkStatus());
    }
  }
  // Writes on until `ends`: single keys, and ranges that are deleted, at a rate that the cluster
  // can follow.
  void WriteUntil(const std::atomic<bool>* ends) {
    const std::unique_ptr<Client> users = ConnectTo(source_.port(), "users");
    std::mt19937 random(1);
    while (!*ends) {
      const std::string key = fmt::format("user{}:name", random() % kMovedKeys);
      ASSERT_EQ(users->Put(key, fmt::to_string(random())), absl::OkStatus());
      if (random() % 50 == 0)
        ASSERT_TRUE(users->Call({"DELRANGE", "[" + key, "[" + key + "x"}).ok());
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  TempDir dir_;
  Cluster cluster_{"moves"};
  ServerProcess source_{VARVE_SERVER_MAIN, dir_.File("source")};
  std::string said_;
};

TEST_F(ClusterMoveTest, LiveAndBack) {
  ASSERT_NE(source_.port(), 0) << source_.log();
  Fill();
  std::unique_ptr<ServerProcess> target = cluster_.StartServer();
  const uint16_t port = target->port();
  ASSERT_NE(port, 0);
  std::atomic<bool> ends{false};
  std::thread writer([&] { WriteUntil(&ends); });
  {
    Process mover(VARVE_CLIENT_MAIN, Move(port, {"--rate=200KiB"}), dir_.File("log"));
    EXPECT_TRUE(Eventually([&] {
      const absl::StatusOr<Reply> names = ConnectTo(port)->Call({"NAMESPACE", "LIST"});
      return !mover.Running() || (names.ok() && !names->elements.empty());
    })) << ReadFile(dir_.File("log"));
    EXPECT_TRUE(Eventually([&] { return !Stored(port, "users").empty(); }));
    target->process().Kill(SIGKILL);
    target = cluster_.StartServer({fmt::format("--port={}", port)});
    const size_t before = Stored(port, "users").size();
    EXPECT_TRUE(Eventually([&] { return Stored(port, "users").size() > before; }))
        << ReadFile(dir_.File("log"));
    mover.Kill(SIGKILL);
  }
  ends = true;
  writer.join();
  EXPECT_EQ(Run(Move(port, {"--finish", "--verify"})), 0) << said_;
  EXPECT_THAT(said_, AllOf(HasSubstr("nothing is behind"), HasSubstr("and 0 differ")));
  EXPECT_EQ(Stored(port, "users"), Stored(source_.port(), "users"));
  EXPECT_EQ(Stored(port, ""), Stored(source_.port(), ""));
  // The groups that were asked for are there.
  const std::unique_ptr<Client> users = ConnectTo(port, "users");
  EXPECT_TRUE(users->Call({"MSET", "user1:a", "1", "user1:b", "2"}).ok());
  EXPECT_THAT(users->Call({"MSET", "user1:a", "1", "user2:b", "2"}).status().message(),
              HasSubstr("CROSSGROUP"));

  const ServerProcess back(VARVE_SERVER_MAIN, dir_.File("back"));
  const std::string file = dir_.File("users.resp");
  EXPECT_EQ(Run({fmt::format("--port={}", port), "--namespace=users", "export", file}), 0) << said_;
  ASSERT_TRUE(ConnectTo(back.port())->Call({"NAMESPACE", "CREATE", "users", "GROUP", ":"}).ok());
  EXPECT_EQ(Run({fmt::format("--port={}", back.port()), "--namespace=users", "import", file}), 0)
      << said_;
  EXPECT_EQ(Stored(back.port(), "users"), Stored(port, "users"));
}

}  // namespace
}  // namespace varve::testing
