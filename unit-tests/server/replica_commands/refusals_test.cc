// Writes that a follower refuses, reads that it refuses while its link is down, and writes that a
// primary refuses without followers.
#include <string>

#include "unit-tests/server/replica_commands/replication_fixture.h"

namespace varve {
namespace {

using testing::ReplicationTest;
using Words = std::vector<std::string>;

constexpr char kReadOnly[] = "!READONLY You can't write against a read only replica.";
constexpr char kNoReplicas[] = "!NOREPLICAS Not enough good replicas to write.";
constexpr char kMasterDown[] =
    "!MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";

TEST_F(ReplicationTest, AFollowerRefusesWritesOfClients) {
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  const Words writes[] = {{"SET", "k", "w"},
                          {"SET", "k", "w", "EX", "9"},
                          {"MSET", "k", "w"},
                          {"DEL", "k"},
                          {"INCR", "n"},
                          {"EXPIRE", "k", "9"},
                          {"GETEX", "k"},
                          {"PURGE", "k"},
                          {"DELRANGE", "-", "+"},
                          {"UNDELETE", "k"},
                          {"FLUSHALL"},
                          {"SWAPDB", "0", "1"},
                          {"NAMESPACE", "CREATE", "n"},
                          {"FEED", "CREATE", "f"},
                          {"FEED", "ACK", "f", "1"},
                          {"FEED", "DROP", "f"},
                          {"INGEST", "BEGIN", "x"},
                          {"COPY", "k", "l"},
                          {"META", "SET", "k", "m"}};
  for (const Words& write : writes) EXPECT_EQ(Do(write), kReadOnly) << write[0];
  const Words reads[] = {{"GET", "k"},
                         {"RANGE", "-", "+"},
                         {"FEED", "LIST"},
                         {"PUBLISH", "c", "m"},
                         {"CONFIG", "SET", "loglevel", "info"},
                         {"CLIENT", "VERSION"},
                         {"COMPACT"},
                         {"SAVE"}};
  for (const Words& read : reads) EXPECT_NE(Do(read)[0], '!') << read[0];
  EXPECT_EQ(Do({"GET", "k"}), "v");
  EXPECT_EQ(Do({"REPLICAOF", "NO", "ONE"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "w"}), "OK");
}

TEST_F(ReplicationTest, PipelinedWritesAreRefusedOneByOne) {
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  const Words requests[] = {
      {"SET", "a", "1"}, {"SET", "b", "1"}, {"GET", "a"}, {"SET", "c", "1"}, {"PING"}};
  for (const Words& request : requests)
    ASSERT_TRUE(client_->Send(std::vector<std::string_view>(request.begin(), request.end())).ok());
  for (const char* reply : {kReadOnly, kReadOnly, "nil", kReadOnly, "PONG"})
    EXPECT_EQ(testing::ReplyText(*client_->Receive()), reply);
}

TEST_F(ReplicationTest, ATransactionWithAWriteIsRefusedWhenItIsQueued) {
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), kReadOnly);
  EXPECT_EQ(Do({"EXEC"}), "!EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(nil)");
}

TEST_F(ReplicationTest, ATransactionThatWasQueuedBeforeIsRefusedAsAWhole) {
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), "QUEUED");
  EXPECT_TRUE(state().calls.follow({"other", 7000}).ok());
  EXPECT_EQ(Do({"EXEC"}),
            std::string("!EXECABORT Transaction discarded because of: ") + (kReadOnly + 1));
  EXPECT_EQ(Do({"GET", "k"}), "nil");
}

TEST_F(ReplicationTest, StaleDataIsRefusedOnRequestWhileTheLinkIsDown) {
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "replica-serve-stale-data", "no"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "v") << "a primary has no link";
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  const Words reads[] = {{"GET", "k"}, {"RANGE", "-", "+"}, {"DBSIZE"}, {"HISTORY", "k"}};
  for (const Words& read : reads) EXPECT_EQ(Do(read), kMasterDown) << read[0];
  EXPECT_EQ(Do({"SET", "k", "w"}), kReadOnly);
  const Words others[] = {{"INFO", "replication"},        {"ROLE"},         {"SELECT", "0"},
                          {"CONFIG", "GET", "loglevel"},  {"CLIENT", "ID"}, {"READAFTER", "0"},
                          {"REPLICAOF", "other", "7000"}, {"HELLO"}};
  for (const Words& other : others) EXPECT_NE(Do(other)[0], '!') << other[0];
  Link(LinkPhase::kConnected);
  EXPECT_EQ(Do({"GET", "k"}), "v");
  Link(LinkPhase::kConnecting);
  EXPECT_EQ(Do({"GET", "k"}), kMasterDown);
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), kMasterDown);
  EXPECT_EQ(Do({"EXEC"}), "!EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(Do({"CONFIG", "SET", "slave-serve-stale-data", "yes"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "v");
}

TEST_F(ReplicationTest, WritesNeedGoodFollowersWhereThatIsAsked) {
  EXPECT_EQ(Do({"CONFIG", "SET", "min-replicas-to-write", "2"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), kNoReplicas);
  EXPECT_EQ(Do({"INCR", "n"}), kNoReplicas);
  EXPECT_EQ(Do({"GET", "k"}), "nil");
  Join("a", 7001);
  Join("b", 7002, /*copies=*/true);
  EXPECT_EQ(Do({"SET", "k", "v"}), kNoReplicas) << "one that takes a copy does not count";
  bool is_new = false;
  EXPECT_TRUE(followers().Begin("b", &is_new));
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"INCR", "n"}), "1");
  // One was not heard of for longer than min-replicas-max-lag.
  const auto hear_of_late = [&] {
    const auto told = std::chrono::steady_clock::now() - std::chrono::seconds(11);
    EXPECT_TRUE(followers().Note("b", 1, 1, told));
  };
  hear_of_late();
  EXPECT_EQ(Do({"SET", "k", "w"}), kNoReplicas);
  EXPECT_EQ(Do({"CONFIG", "SET", "min-replicas-max-lag", "3600"}), "OK");
  hear_of_late();
  EXPECT_EQ(Do({"SET", "k", "w"}), "OK");
  followers().LeaveSilent(std::chrono::steady_clock::now() - std::chrono::seconds(10));
  EXPECT_EQ(Do({"SET", "k", "x"}), kNoReplicas);
  EXPECT_EQ(Do({"CONFIG", "SET", "min-slaves-max-lag", "0"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "x"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "GET", "min-slaves-*"}), "(min-slaves-max-lag 0 min-slaves-to-write 2)");
}

TEST_F(ReplicationTest, AFollowerStaysReadOnly) {
  const std::string refused = Do({"CONFIG", "SET", "replica-read-only", "no"});
  EXPECT_NE(refused.find("takes yes; the versions of a follower are those of its primary"),
            std::string::npos)
      << refused;
  EXPECT_EQ(Do({"CONFIG", "SET", "slave-read-only", "yes"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "GET", "replica-read-only"}), "(replica-read-only yes)");
}

TEST_F(ReplicationTest, SettingsHaveRedisNames) {
  EXPECT_EQ(Do({"CONFIG", "SET", "masterauth", "secret", "masteruser", "link"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "GET", "primary-auth"}), "(primary-auth secret)");
  EXPECT_EQ(state().configuration.replication().password, "secret");
  EXPECT_EQ(state().configuration.replication().user, "link");
  EXPECT_EQ(Do({"CONFIG", "SET", "tls-replication", "yes"}), "OK");
  EXPECT_TRUE(state().configuration.replication().tls);
  EXPECT_EQ(Do({"CONFIG", "SET", "replica-announce-ip", "here", "replica-announce-port", "7"}),
            "OK");
  EXPECT_EQ(state().configuration.replication().announced_port, 7);
  EXPECT_EQ(Do({"CONFIG", "SET", "sync-replicas", "2"}), "OK");
  EXPECT_EQ(state().live.sync_replicas, 2u);
  EXPECT_EQ(Do({"CONFIG", "SET", "replica-priority", "7"}), "OK");
  EXPECT_TRUE(state().calls.follow({"other", 7000}).ok());
  EXPECT_EQ(Info("replication", "slave_priority"), "7");
  EXPECT_NE(Do({"CONFIG", "SET", "replicaof", "other 7000"}).find("can't set immutable config"),
            std::string::npos);
}

}  // namespace
}  // namespace varve
