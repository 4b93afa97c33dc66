// Servers that follow each other, as processes: copies, restarts, promotions, what goes wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "client/client.h"
#include "fmt/format.h"
#include "server/replication/replica_protocol.h"
#include "type/version.h"
#include "unit-tests/server/following/redis_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::ReadFile;
using testing::RedisServer;
using testing::ServerProcess;
using testing::TempDir;

const std::string kServer = VARVE_SERVER_MAIN;

using Words = std::vector<std::string>;

// A server that keeps its port and its directory over restarts.
class Node {
 public:
  Node(const TempDir& directory, const std::string& name, Words arguments = {})
      : directory_(directory.File(name)),
        port_(RedisServer::FreePort()),
        arguments_(std::move(arguments)) {
    arguments_.push_back(fmt::format("--port={}", port_));
    Start();
  }

  void Start() {
    process_ = std::make_unique<ServerProcess>(kServer, directory_, arguments_);
    EXPECT_NE(process_->port(), 0) << process_->log();
  }
  void KillAndStart() {
    process_->process().Kill(SIGKILL);
    process_->process().Wait();
    Start();
  }
  ServerProcess& server() { return *process_; }
  uint16_t port() const { return port_; }
  const std::string& directory() const { return directory_; }

  // Returns the reply as text; "(lost)" where there is no server. A connection that the server has
  // closed is made again, and the request sent again.
  std::string Do(const Words& words) {
    constexpr int kTries = 3;
    std::string reply = "(lost)";
    for (int i = 0; i < kTries && reply == "(lost)"; ++i) reply = TryToDo(words);
    return reply;
  }
  // Waits until the reply is this one.
  bool Becomes(const Words& words, const std::string& reply) {
    std::string last;
    const bool became = Eventually([&] { return (last = Do(words)) == reply; });
    EXPECT_EQ(last, reply) << words[0] << ' ' << (words.size() > 1 ? words[1] : "") << "\n"
                           << Do({"INFO", "replication"}) << process_->log();
    return became;
  }
  std::string Info(const std::string& section, const std::string& field) {
    const std::string text = Do({"INFO", section});
    const std::string begin = "\n" + field + ":";
    const size_t at = text.find(begin);
    if (at == std::string::npos) return "";
    const size_t from = at + begin.size();
    return text.substr(from, text.find('\r', from) - from);
  }
  bool InfoBecomes(const std::string& section, const std::string& field, const std::string& value) {
    std::string last;
    const bool became = Eventually([&] { return (last = Info(section, field)) == value; });
    EXPECT_EQ(last, value) << field << "\n" << Do({"INFO", section}) << process_->log();
    return became;
  }
  void Follow(const Node& primary) {
    EXPECT_EQ(Do({"REPLICAOF", "127.0.0.1", std::to_string(primary.port())}), "OK");
  }
  // Waits until it follows.
  bool Follows() { return InfoBecomes("replication", "master_link_status", "up"); }

  std::string password;
  ClientTlsOptions tls;

 private:
  std::string TryToDo(const Words& words) {
    if (client_ == nullptr) {
      ClientOptions options;
      options.port = port_;
      options.password = password;
      options.tls = tls;
      options.timeout = std::chrono::seconds(60);
      options.reconnect_for = std::chrono::milliseconds(0);
      absl::StatusOr<std::unique_ptr<Client>> made = Client::Connect(options);
      if (!made.ok()) return "(lost)";
      client_ = *std::move(made);
    }
    const std::vector<std::string_view> views(words.begin(), words.end());
    absl::Status sent = client_->Send(views);
    if (sent.ok()) {
      absl::StatusOr<Reply> reply = client_->Receive();
      if (reply.ok()) return TextOf(*reply);
    }
    client_ = nullptr;
    return "(lost)";
  }
  static std::string TextOf(const Reply& reply) {
    switch (reply.type) {
      case Reply::Type::kInteger:
        return std::to_string(reply.integer);
      case Reply::Type::kNull:
        return "(nil)";
      case Reply::Type::kArray: {
        std::string text;
        for (const Reply& element : reply.elements) text += TextOf(element) + " ";
        return text;
      }
      default:
        return reply.text;
    }
  }

  const std::string directory_;
  const uint16_t port_;
  Words arguments_;
  std::unique_ptr<ServerProcess> process_;
  std::unique_ptr<Client> client_;
};

std::vector<std::string> DivergedFiles(const Node& node) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(node.directory())) {
    if (entry.path().filename().string().starts_with("diverged-"))
      files.push_back(entry.path().string());
  }
  return files;
}

// Returns what the files take that are there; files come and go meanwhile.
uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  std::error_code gone;
  for (auto entry = std::filesystem::recursive_directory_iterator(directory, gone);
       !gone && entry != std::filesystem::recursive_directory_iterator(); entry.increment(gone)) {
    struct stat found = {};
    if (::lstat(entry->path().c_str(), &found) == 0 && S_ISREG(found.st_mode))
      bytes += static_cast<uint64_t>(found.st_size);
  }
  return bytes;
}

class FollowingTest : public ::testing::Test {
 protected:
  TempDir directory_;
};

TEST_F(FollowingTest, ACopyThenChangesAndNoCopyAfterRestartsOfEitherSide) {
  Node primary(directory_, "primary"), follower(directory_, "follower");
  primary.Do({"SET", "before", "1"});
  primary.Do({"SET", "expires", "1", "PX", "100000000"});
  primary.Do({"NAMESPACE", "CREATE", "users"});
  follower.Follow(primary);
  EXPECT_TRUE(follower.Becomes({"GET", "before"}, "1"));
  EXPECT_NE(follower.Do({"PTTL", "expires"}), "-1");
  EXPECT_EQ(follower.Do({"NAMESPACE", "EXISTS", "users"}),
            primary.Do({"NAMESPACE", "EXISTS", "users"}));
  primary.Do({"SET", "after", "1"});
  EXPECT_EQ(primary.Do({"WAIT", "1", "0"}), "1");
  EXPECT_EQ(follower.Do({"GET", "after"}), "1");
  EXPECT_EQ(follower.Do({"VERSION", "after"}), primary.Do({"VERSION", "after"}));
  EXPECT_EQ(primary.Info("stats", "sync_full"), "1");
  EXPECT_EQ(follower.Do({"SET", "mine", "1"}),
            "READONLY You can't write against a read only replica.");

  primary.KillAndStart();
  primary.Do({"SET", "again", "1"});
  EXPECT_TRUE(follower.Becomes({"GET", "again"}, "1"));
  follower.KillAndStart();  // it still knows whom it follows
  primary.Do({"SET", "again", "2"});
  EXPECT_TRUE(follower.Becomes({"GET", "again"}, "2"));
  EXPECT_EQ(primary.Info("stats", "sync_full"), "0") << "since its start";
  EXPECT_NE(primary.Info("stats", "sync_partial_ok"), "0");
  EXPECT_EQ(primary.Info("replication", "master_replid"),
            follower.Info("replication", "master_replid"));
}

TEST_F(FollowingTest, GroupsOfKeysAreTheSameOnAFollower) {
  Node primary(directory_, "primary"), follower(directory_, "follower");
  const auto group_of = [](Node& node, const std::string& name) {
    const std::string info = node.Do({"NAMESPACE", "INFO", name});
    const size_t at = info.find("together ");
    return at == std::string::npos ? info : info.substr(at, info.find(" atomicity") - at);
  };
  primary.Do({"NAMESPACE", "CREATE", "copied", "GROUP", ":"});
  primary.Do({"NAMESPACE", "USE", "copied"});
  primary.Do({"MSET", "a:1", "1", "a:2", "2"});
  follower.Follow(primary);
  EXPECT_TRUE(follower.Follows());
  primary.Do({"NAMESPACE", "CREATE", "later", "TOGETHER", "yes"});
  // What a primary writes in one step need not be of one group: keys that expire go together.
  for (int i = 0; i < 50; ++i) {
    primary.Do({"SET", fmt::format("e{}:1", i), "v", "PX", "1"});
    primary.Do({"SET", fmt::format("s{}:1", i), "v"});
  }
  EXPECT_TRUE(primary.Becomes({"DBSIZE"}, "52"));
  EXPECT_EQ(primary.Do({"WAIT", "1", "0"}), "1");
  follower.Do({"NAMESPACE", "USE", "copied"});
  EXPECT_TRUE(follower.Becomes({"DBSIZE"}, "52"));
  for (const std::string name : {"copied", "later"})
    EXPECT_EQ(group_of(follower, name), group_of(primary, name));
  EXPECT_EQ(group_of(follower, "copied"), "together no group :");
  EXPECT_EQ(group_of(follower, "later"), "together yes group ");

  EXPECT_EQ(follower.Do({"REPLICAOF", "NO", "ONE"}), "OK");
  for (const bool restarted : {false, true}) {
    if (restarted) follower.KillAndStart();
    follower.Do({"PING"});  // makes the connection again
    EXPECT_EQ(follower.Do({"NAMESPACE", "USE", "copied"}), "OK");
    EXPECT_TRUE(follower.Do({"MSET", "a:1", "x", "b:1", "x"}).starts_with("CROSSGROUP"));
    EXPECT_EQ(follower.Do({"MSET", "a:1", "x", "a:2", "x"}), "OK");
  }
}

TEST_F(FollowingTest, APromotionForksAndWhatTheOldPrimaryHadMoreIsInAFile) {
  Node primary(directory_, "primary"), follower(directory_, "follower");
  follower.Follow(primary);
  EXPECT_TRUE(follower.Follows());
  primary.Do({"SET", "both", "1"});
  EXPECT_EQ(primary.Do({"WAIT", "1", "0"}), "1");
  EXPECT_EQ(follower.Do({"REPLICAOF", "NO", "ONE"}), "OK");
  EXPECT_EQ(follower.Do({"SET", "new", "1"}), "OK");
  EXPECT_EQ(primary.Do({"SET", "old", "lost one"}), "OK");
  EXPECT_EQ(primary.Do({"DEL", "both"}), "1");
  EXPECT_NE(primary.Info("replication", "master_replid"),
            follower.Info("replication", "master_replid"));

  primary.Follow(follower);
  EXPECT_TRUE(primary.Becomes({"GET", "new"}, "1"));
  EXPECT_EQ(primary.Do({"GET", "old"}), "(nil)");
  EXPECT_EQ(primary.Do({"GET", "both"}), "1");
  EXPECT_TRUE(primary.InfoBecomes("stats", "diverged_operations", "2"));
  const std::vector<std::string> files = DivergedFiles(primary);
  ASSERT_EQ(files.size(), 1u);
  const std::string diverged = ReadFile(files[0]);
  EXPECT_NE(diverged.find("SET\r\n$3\r\nold\r\n$8\r\nlost one\r\n"), std::string::npos) << diverged;
  EXPECT_NE(diverged.find("DEL\r\n$4\r\nboth\r\n"), std::string::npos) << diverged;
  primary.KillAndStart();
  EXPECT_EQ(primary.Info("stats", "diverged_operations"), "2");
  // The other way round nothing has diverged, and no copy is taken.
  follower.Do({"SET", "more", "1"});
  EXPECT_TRUE(primary.Becomes({"GET", "more"}, "1"));
}

TEST_F(FollowingTest, FollowersHaveFollowersAndNobodyFollowsInACircle) {
  Node first(directory_, "first"), second(directory_, "second"), third(directory_, "third");
  second.Follow(first);
  EXPECT_TRUE(second.Follows());
  third.Follow(second);
  EXPECT_TRUE(third.Follows());
  first.Do({"MSET", "a", "1", "b", "2"});
  EXPECT_TRUE(third.Becomes({"MGET", "a", "b"}, "1 2 "));
  EXPECT_EQ(third.Do({"VERSION", "b"}), first.Do({"VERSION", "b"}));
  first.Follow(third);
  EXPECT_TRUE(Eventually([&] {
    return first.Info("replication", "master_link_error").find("REPLICAOF NO ONE") !=
           std::string::npos;
  })) << first.Do({"INFO", "replication"});
  EXPECT_EQ(first.Do({"GET", "a"}), "1") << "nothing is lost by it";
  // The one in the middle is promoted, and the last one goes on with it without a copy.
  EXPECT_EQ(second.Do({"REPLICAOF", "NO", "ONE"}), "OK");
  EXPECT_EQ(second.Do({"SET", "c", "3"}), "OK");
  EXPECT_TRUE(third.Becomes({"GET", "c"}, "3"));
  EXPECT_EQ(second.Info("stats", "sync_full"), "1");
  EXPECT_TRUE(first.Becomes({"GET", "c"}, "3")) << "and what was the first one, too";
}

TEST_F(FollowingTest, AStoreWithDataOfItsOwnIsNotThrownAway) {
  Node primary(directory_, "primary"), other(directory_, "other");
  primary.Do({"SET", "a", "1"});
  other.Do({"SET", "mine", "1"});
  other.Follow(primary);
  EXPECT_TRUE(Eventually([&] {
    return other.Info("replication", "master_link_error").find("has data of its own") !=
           std::string::npos;
  })) << other.Do({"INFO", "replication"});
  EXPECT_EQ(other.Do({"GET", "mine"}), "1");
  EXPECT_EQ(other.Do({"REPLICAOF", "NO", "ONE"}), "OK");
  EXPECT_EQ(other.Do({"FLUSHALL"}), "OK");
  other.Follow(primary);
  EXPECT_TRUE(other.Becomes({"GET", "a"}, "1"));
}

TEST_F(FollowingTest, AWrongPasswordIsSaidAndARightOneTakenLater) {
  const std::string file = directory_.File("password");
  std::ofstream(file) << "secret";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  Node primary(directory_, "primary", {"--requirepass-file=" + file});
  Node follower(directory_, "follower");
  primary.password = "secret";
  primary.Do({"SET", "a", "1"});
  follower.Do({"CONFIG", "SET", "primary-auth", "wrong"});
  follower.Follow(primary);
  EXPECT_TRUE(Eventually([&] {
    return follower.Info("replication", "master_link_error").find("WRONGPASS") != std::string::npos;
  })) << follower.Do({"INFO", "replication"});
  EXPECT_EQ(follower.Do({"CONFIG", "SET", "primary-auth", "secret"}), "OK");
  EXPECT_TRUE(follower.Becomes({"GET", "a"}, "1"));
  EXPECT_EQ(follower.Do({"CONFIG", "GET", "primary-auth"}), "primary-auth secret ")
      << "settings hold when the server begins anew with the copy";
}

TEST_F(FollowingTest, OneThatIsTooFarBehindTakesACopyByItself) {
  Node primary(directory_, "primary",
               {"--replica-retention-bytes=1MiB", "--write-buffer-size=1MiB"}),
      follower(directory_, "follower");
  follower.Follow(primary);
  EXPECT_TRUE(follower.Follows());
  follower.server().process().Kill(SIGKILL);
  follower.server().process().Wait();
  const std::string value(10'000, 'v');
  for (int i = 0; i < 1'000; ++i) primary.Do({"SET", fmt::format("key{}", i), value});
  // Flushes give up what is retained too long, at their own pace.
  EXPECT_TRUE(Eventually([&] {
    primary.Do({"SET", "key0", value});
    return std::stoull(primary.Info("replication", "repl_backlog_first_byte_offset")) > 10;
  }));
  follower.Start();
  EXPECT_TRUE(follower.Becomes({"GET", "key999"}, value));
  EXPECT_EQ(primary.Info("stats", "sync_full"), "2");
  EXPECT_EQ(follower.Do({"DBSIZE"}), "1000");
}

TEST_F(FollowingTest, AnEarlierFormatIsRefusedWithTheOrderOfAnUpgrade) {
  Node primary(directory_, "primary");
  const auto hello = [&](uint32_t protocol, uint32_t format) {
    return primary.Do({"REPLICA", "HELLO", std::to_string(protocol), std::to_string(format),
                       std::string(kReplicaIdSize, 'a'), "0"});
  };
  const std::string refused = hello(kReplicaProtocol, kManifestFormatVersion - 1);
  EXPECT_TRUE(refused.starts_with("REPLICAVERSION")) << refused;
  EXPECT_NE(refused.find("upgrade the follower first"), std::string::npos) << refused;
  EXPECT_TRUE(hello(kReplicaProtocol + 1, kManifestFormatVersion).starts_with("REPLICAVERSION"));
  EXPECT_TRUE(primary.Do({"REPLICA", "PULL", "id", "0", "1000", "0"}).starts_with("NOTJOINED"));
  // A follower that was upgraded before its primary.
  const std::string taken = hello(kReplicaProtocol, kManifestFormatVersion + 1);
  EXPECT_TRUE(taken.starts_with(fmt::format("{} {} ", kReplicaProtocol, kManifestFormatVersion)))
      << taken;
}

TEST_F(FollowingTest, TheLinkSpeaksTlsAndWrongCertificatesAreSaid) {
  testing::TestCertificates certificates(directory_.File(""));
  certificates.Issue("server", {.common_name = "server"});
  std::filesystem::create_directory(directory_.File("others"));
  testing::TestCertificates others(directory_.File("others"), "another authority");
  const Words tls = {"--tls=required", "--tls-replication=yes",
                     "--tls-cert-file=" + certificates.File("server.crt"),
                     "--tls-key-file=" + certificates.File("server.key"),
                     "--tls-ca-cert-file=" + certificates.authority()};
  Node primary(directory_, "primary", tls), follower(directory_, "follower", tls);
  Node stranger(directory_, "stranger",
                {"--tls-replication=yes", "--tls-ca-cert-file=" + others.authority()});
  primary.tls = follower.tls = {.enabled = true,
                                .ca_file = certificates.authority(),
                                .certificate_file = certificates.File("server.crt"),
                                .key_file = certificates.File("server.key")};
  EXPECT_EQ(primary.Do({"SET", "a", "1"}), "OK");
  follower.Follow(primary);
  EXPECT_TRUE(follower.Becomes({"GET", "a"}, "1"));
  stranger.Follow(primary);
  EXPECT_TRUE(Eventually([&] {
    return stranger.Info("replication", "master_link_error").find("certificate") !=
           std::string::npos;
  })) << stranger.Do({"INFO", "replication"});
}

TEST_F(FollowingTest, RepliesWaitForFollowersWhereThatIsAsked) {
  Node primary(directory_, "primary", {"--sync-replicas=1"}), follower(directory_, "follower");
  follower.Follow(primary);
  EXPECT_TRUE(follower.Follows());
  EXPECT_EQ(primary.Do({"SET", "a", "1"}), "OK");
  EXPECT_EQ(follower.Do({"GET", "a"}), "1") << "it is there when the reply is";
  follower.server().process().Stop();
  ClientOptions options;
  options.port = primary.port();
  options.timeout = std::chrono::milliseconds(1000);  // enough to connect on a busy machine
  options.reconnect_for = std::chrono::milliseconds(0);
  auto waiting = Client::Connect(options);
  ASSERT_TRUE(waiting.ok());
  EXPECT_FALSE((*waiting)->Put("b", "2").ok()) << "its time is over";
  auto reader = Client::Connect(options);
  ASSERT_TRUE(reader.ok());
  EXPECT_FALSE((*reader)->Get("b").ok()) << "nobody sees what a failover could lose";
  follower.server().process().Kill(SIGCONT);
  EXPECT_TRUE(primary.Becomes({"GET", "b"}, "2"));
  EXPECT_EQ(follower.Do({"GET", "b"}), "2");
}

TEST_F(FollowingTest, AClientReadsItsOwnWritesOnAnyServer) {
  Node primary(directory_, "primary"), follower(directory_, "follower");
  follower.Follow(primary);
  EXPECT_TRUE(follower.Follows());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(primary.Do({"SET", "k", std::to_string(i)}), "OK");
    const std::string version = primary.Do({"CLIENT", "VERSION"});
    EXPECT_EQ(follower.Do({"READAFTER", version, "60000"}), "OK");
    EXPECT_EQ(follower.Do({"GET", "k"}), std::to_string(i));
  }
  EXPECT_TRUE(follower.Do({"READAFTER", "1000000", "10"}).starts_with("TIMEOUT"));
}

TEST_F(FollowingTest, CachesOfAFollowersClientsHearOfTheChanges) {
  Node primary(directory_, "primary"), follower(directory_, "follower");
  primary.Do({"SET", "k", "1"});
  follower.Follow(primary);
  EXPECT_TRUE(follower.Becomes({"GET", "k"}, "1"));
  std::vector<std::string> pushed;
  ClientOptions options;
  options.port = follower.port();
  options.protocol = 3;
  options.on_push = [&](const Reply& message) {
    if (message.elements.size() == 2 && message.elements[0].text == "invalidate")
      pushed.push_back(message.elements[1].elements.at(0).text);
  };
  auto cache = Client::Connect(options);
  ASSERT_TRUE(cache.ok()) << cache.status();
  ASSERT_TRUE((*cache)->Call({"CLIENT", "TRACKING", "ON"}).ok());
  EXPECT_EQ((*cache)->Get("k").value(), "1");
  primary.Do({"SET", "other", "1"});
  primary.Do({"SET", "k", "2"});
  EXPECT_TRUE(Eventually([&] { return (*cache)->Ping().ok() && !pushed.empty(); }));
  EXPECT_EQ(pushed, (Words{"k"}));
  EXPECT_EQ((*cache)->Get("k").value(), "2");
}

TEST_F(FollowingTest, ACopyStaysWithinTheBoundOfTheDisk) {
  constexpr uint64_t kLimit = uint64_t{64} << 20;
  Node primary(directory_, "primary");
  Node follower(directory_, "follower",
                {"--memory-limit=128MiB", fmt::format("--max-disk-bytes={}", kLimit)});
  std::mt19937_64 random(1);
  std::vector<uint64_t> words(12'500);
  for (int i = 0; i < 800; ++i) {
    for (uint64_t& word : words) word = random();
    const std::string value(reinterpret_cast<const char*>(words.data()), words.size() * 8);
    ASSERT_EQ(primary.Do({"SET", fmt::format("key{}", i), value}), "OK");
  }
  follower.Follow(primary);
  uint64_t most = 0;
  EXPECT_TRUE(Eventually([&] {
    most = std::max(most, BytesIn(follower.directory()));
    return follower.Info("replication", "master_link_error").find("max-disk-bytes") !=
           std::string::npos;
  })) << follower.Do({"INFO", "replication"});
  EXPECT_LE(most, kLimit);
  EXPECT_EQ(follower.Do({"DBSIZE"}), "0") << "it serves what it has";
}

TEST_F(FollowingTest, AKillDuringTheCopyLeavesTheOldStoreOrTheNewOne) {
  Node primary(directory_, "primary"), follower(directory_, "follower");
  const std::string value(100'000, 'v');
  for (int i = 0; i < 300; ++i) primary.Do({"SET", fmt::format("key{}", i), value});
  follower.Follow(primary);
  // At moments that differ from run to run.
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Eventually([&] {
      return follower.Info("replication", "master_sync_in_progress") == "1" ||
             follower.Do({"DBSIZE"}) == "300";
    }));
    follower.KillAndStart();
    const std::string size = follower.Do({"DBSIZE"});
    EXPECT_TRUE(size == "0" || size == "300") << size;
  }
  EXPECT_TRUE(follower.Becomes({"DBSIZE"}, "300"));
}

}  // namespace
}  // namespace varve
