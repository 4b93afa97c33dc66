// REPLICAOF, SLAVEOF and ROLE, and what INFO shows of replication, in Redis' words.
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/server/replica_commands/replication_fixture.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::ReplicationTest;

constexpr char kBadPort[] = "!ERR Invalid master port";

class RedisWordsTest : public ReplicationTest {
 protected:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  // Writes a key and returns the version of that.
  std::string Write() {
    EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
    return fmt::to_string(Version());
  }
  void Follow() { EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK"); }
  // One follower that has version 1, and one that takes a copy.
  void JoinTwo() {
    Join("a", 7001);
    Note("a", 1);
    Join("b", 7002, /*copies=*/true);
  }
  void ExpectInfo(const std::string& section, const Fields& fields) {
    for (const auto& [name, value] : fields) EXPECT_EQ(Info(section, name), value) << name;
  }
};

TEST_F(RedisWordsTest, ReplicaOfTakesAHostAndAPort) {
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  EXPECT_TRUE(state().replication.follows());
  EXPECT_EQ(state().replication.primary(), (PrimaryAddress{"other", 7000}));
  EXPECT_EQ(Do({"REPLICAOF", "OTHER", "7000"}), "OK Already connected to specified master");
  EXPECT_EQ(Do({"SLAVEOF", "other", "7001"}), "OK");
  EXPECT_EQ(state().replication.primary().port, 7001);
  EXPECT_EQ(Do({"CONFIG", "GET", "replicaof"}), "(replicaof other 7001)");
  EXPECT_EQ(Do({"REPLICAOF", "No", "One"}), "OK");
  EXPECT_FALSE(state().replication.follows());
  EXPECT_EQ(Do({"CONFIG", "GET", "replicaof"}), "(replicaof )");
  EXPECT_EQ(Do({"REPLICAOF", "NO", "ONE"}), "OK") << "of a primary, too";
}

TEST_F(RedisWordsTest, ReplicaOfRefusesWhatIsNoAddress) {
  EXPECT_EQ(Do({"REPLICAOF", "other"}), "!ERR wrong number of arguments for 'replicaof' command");
  EXPECT_EQ(Do({"SLAVEOF"}), "!ERR wrong number of arguments for 'slaveof' command");
  for (const char* port : {"x", "-1", "65536", "", "1x", "99999999999999999999", "0"})
    EXPECT_EQ(Do({"REPLICAOF", "other", port}), kBadPort) << port;
  for (const std::string& host : {std::string(), std::string("two words"), std::string("a\nb"),
                                  std::string("a\0b", 3), std::string(256, 'h')})
    EXPECT_EQ(Do({"REPLICAOF", host, "7000"}), "!ERR Invalid master host") << host;
  EXPECT_FALSE(state().replication.follows());
  refuses_to_follow_ = true;
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "!ERR a test's refusal");
  EXPECT_EQ(Do({"CONFIG", "GET", "replicaof"}), "(replicaof )");
  state().replication.failover = FailoverPhase::kInProgress;
  EXPECT_EQ(Do({"REPLICAOF", "NO", "ONE"}), "!ERR REPLICAOF not allowed while failing over.");
}

// So do programs that watch over Redis.
TEST_F(RedisWordsTest, ReplicaOfInsideMultiHoldsAfterwards) {
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "QUEUED");
  EXPECT_EQ(Do({"CLIENT", "ID"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}).substr(0, 4), "(OK ");
  EXPECT_TRUE(testing::Eventually([&] { return state().replication.follows(); }));
}

TEST_F(RedisWordsTest, ReplicaOfNeedsRightsToAllKeys) {
  EXPECT_EQ(Do({"ACL", "SETUSER", "part", "on", "nopass", "~app:*", "+@all"}), "OK");
  EXPECT_EQ(Do({"ACL", "SETUSER", "reader", "on", "nopass", "%R~*", "+@all"}), "OK");
  EXPECT_EQ(Do({"ACL", "SETUSER", "writer", "on", "nopass", "~*", "+replicaof"}), "OK");
  for (const char* user : {"part", "reader"}) {
    EXPECT_EQ(Do({"AUTH", user, "x"}), "OK");
    EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}).rfind("!NOPERM", 0), 0u) << user;
    EXPECT_EQ(Do({"SLAVEOF", "NO", "ONE"}).rfind("!NOPERM", 0), 0u) << user;
  }
  EXPECT_FALSE(state().replication.follows());
  EXPECT_EQ(Do({"AUTH", "writer", "x"}), "OK");
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  EXPECT_EQ(Do({"SLAVEOF", "NO", "ONE"}).rfind("!NOPERM", 0), 0u);
}

TEST_F(RedisWordsTest, RoleOfAPrimaryNamesItsFollowers) {
  const std::string version = Write();
  EXPECT_EQ(Do({"ROLE"}), "(master " + version + " ())");
  JoinTwo();
  EXPECT_EQ(Do({"ROLE"}), "(master " + version + " ((10.0.0.7 7001 1)))");
}

TEST_F(RedisWordsTest, RoleOfAFollowerNamesItsPrimary) {
  const std::string version = Write();
  Follow();
  EXPECT_EQ(Do({"ROLE"}), "(slave other 7000 connect " + version + ")");
  const std::pair<LinkPhase, std::string> phases[] = {{LinkPhase::kConnecting, "connecting"},
                                                      {LinkPhase::kSync, "sync"},
                                                      {LinkPhase::kConnected, "connected"}};
  for (const auto& [phase, name] : phases) {
    Link(phase);
    EXPECT_EQ(Do({"ROLE"}), "(slave other 7000 " + name + " " + version + ")");
  }
  EXPECT_NE(Do({"HELLO", "2"}).find("role replica"), std::string::npos);
}

TEST_F(RedisWordsTest, InfoOfAPrimaryListsItsFollowersAsRedisDoes) {
  ExpectInfo("replication", {{"role", "master"},
                             {"connected_slaves", "0"},
                             {"master_host", "(none)"},
                             {"min_slaves_good_slaves", "(none)"},
                             {"master_failover_state", "no-failover"},
                             {"second_repl_offset", "-1"}});
  EXPECT_EQ(Info("replication", "master_replid").size(), 40u);
  EXPECT_EQ(Info("replication", "master_replid2"), std::string(40, '0'));
  const std::string version = Write();
  EXPECT_EQ(Info("replication", "master_repl_offset"), version);
  JoinTwo();
  ExpectInfo("replication", {{"connected_slaves", "2"},
                             {"slave0", "ip=10.0.0.7,port=7001,state=online,offset=1,lag=0"},
                             {"slave1", "ip=10.0.0.7,port=7002,state=send_bulk,offset=0,lag=0"}});
  EXPECT_EQ(Do({"CONFIG", "SET", "min-replicas-to-write", "1"}), "OK");
  EXPECT_EQ(Info("replication", "min_slaves_good_slaves"), "1");
  EXPECT_EQ(Do({"CONFIG", "SET", "min-slaves-max-lag", "0"}), "OK");
  EXPECT_EQ(Info("replication", "min_slaves_good_slaves"), "(none)");
}

TEST_F(RedisWordsTest, InfoOfAFollowerShowsTheLink) {
  const std::string version = Write();
  Follow();
  Link(LinkPhase::kConnecting, "WRONGPASS\r\nfollows");
  ExpectInfo("replication", {{"role", "slave"},
                             {"master_host", "other"},
                             {"master_port", "7000"},
                             {"master_link_status", "down"},
                             {"master_last_io_seconds_ago", "-1"},
                             {"master_link_down_since_seconds", "0"},
                             {"master_link_error", "WRONGPASS  follows"},
                             {"slave_repl_offset", version},
                             {"slave_read_repl_offset", version},
                             {"slave_priority", "100"},
                             {"slave_read_only", "1"},
                             {"connected_slaves", "0"}});
  Link(LinkPhase::kConnected);
  ExpectInfo("replication", {{"master_link_status", "up"},
                             {"master_last_io_seconds_ago", "0"},
                             {"master_link_down_since_seconds", "(none)"},
                             {"master_link_error", "(none)"},
                             {"master_sync_total_bytes", "(none)"}});
  state().replication.UpdateLink([](LinkReport& link) {
    link.phase = LinkPhase::kSync;
    link.copy_bytes = 200;
    link.copied_bytes = 50;
    link.is_redis = true;
    link.skipped = {{"hash", 3}, {"list", 1}};
    link.skipped_names = {"h1", "h2"};
  });
  ExpectInfo("replication", {{"master_sync_in_progress", "1"},
                             {"master_sync_total_bytes", "200"},
                             {"master_sync_read_bytes", "50"},
                             {"master_sync_left_bytes", "150"},
                             {"master_sync_perc", "25.00"},
                             {"redis_skipped_hash", "3"},
                             {"redis_skipped_list", "1"},
                             {"redis_skipped_keys", "h1,h2"}});
}

TEST_F(RedisWordsTest, InfoCountsSyncs) {
  state().replication.counts.full = 2;
  state().replication.counts.partial_ok = 3;
  state().replication.counts.partial_err = 4;
  state().replication.counts.diverged = 5;
  ExpectInfo("stats", {{"sync_full", "2"},
                       {"sync_partial_ok", "3"},
                       {"sync_partial_err", "4"},
                       {"diverged_operations", "5"}});
  EXPECT_EQ(Do({"CONFIG", "RESETSTAT"}), "OK");
  EXPECT_EQ(Info("stats", "sync_partial_ok"), "0");
  EXPECT_EQ(Info("stats", "diverged_operations"), "5") << "what was lost stays counted";
}

}  // namespace
}  // namespace varve
