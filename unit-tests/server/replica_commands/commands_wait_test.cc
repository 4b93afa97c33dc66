// WAIT, WAITAOF, READAFTER and CLIENT VERSION: versions, and replies that wait for them.
#include <chrono>
#include <string>

#include "unit-tests/server/replica_commands/replication_fixture.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ReplicationTest;
using Words = std::vector<std::string>;

class WaitTest : public ReplicationTest {
 protected:
  using ReplicationTest::ReplicationTest;

  // Sends the request on a connection of its own and returns once it waits.
  std::unique_ptr<Client> Begin(const Words& request, const Words& before = {}) {
    std::unique_ptr<Client> client = server_.Connect();
    if (!before.empty()) {
      EXPECT_EQ(Ask(*client, before), "OK");
    }
    const size_t blocked = state().clients.changes.blocked();
    const std::vector<std::string_view> words(request.begin(), request.end());
    EXPECT_TRUE(client->Send(words).ok());
    client->pipeline().Flush();
    EXPECT_TRUE(
        testing::Eventually([&] { return state().clients.changes.blocked() == blocked + 1; }));
    return client;
  }
  static std::string End(Client& client) {
    const absl::StatusOr<Reply> reply = client.Receive();
    return reply.ok() ? testing::ReplyText(*reply) : "lost: " + reply.status().ToString();
  }
};

// --- CLIENT VERSION ------------------------------------------------------------------------------

TEST_F(WaitTest, TheVersionIsThatOfTheConnectionsLastWrite) {
  EXPECT_EQ(Do({"CLIENT", "VERSION"}), "0");
  EXPECT_EQ(Do({"CLIENT", "VERSION", "x"}),
            "!ERR wrong number of arguments for 'client|version' command");
  const Words writes[] = {{"SET", "k", "1"},  {"SET", "k", "2", "EX", "100"},
                          {"INCR", "k"},      {"MSET", "a", "1", "b", "2"},
                          {"DEL", "a"},       {"PERSIST", "k"},
                          {"DELPREFIX", "b"}, {"SWAPDB", "0", "1"}};
  SequenceNumber before = 0;
  for (const Words& write : writes) {
    EXPECT_EQ(Do(write).rfind("!", 0), std::string::npos) << write[0];
    const SequenceNumber after = Version();
    EXPECT_GT(after, before) << write[0];
    EXPECT_EQ(after, state().store->GetSnapshot()->sequence()) << write[0];
    before = after;
  }
  const std::unique_ptr<Client> other = server_.Connect();
  EXPECT_EQ(Ask(*other, {"SET", "o", "1"}), "OK");
  EXPECT_EQ(Version(), before) << "others' writes are not of this connection";
  EXPECT_GT(std::stoull(Ask(*other, {"CLIENT", "VERSION"})), before);
}

TEST_F(WaitTest, WhatChangesNothingHasNoVersion) {
  EXPECT_EQ(Do({"SET", "k", "1"}), "OK");
  const SequenceNumber before = Version();
  const std::unique_ptr<Client> other = server_.Connect();
  EXPECT_EQ(Ask(*other, {"SET", "o", "1"}), "OK");
  const Words nothing[] = {
      {"GET", "k"},          {"DEL", "missing"}, {"SETNX", "k", "2"},       {"SET", "k", "2", "NX"},
      {"GETDEL", "missing"}, {"PERSIST", "k"},   {"EXPIRE", "missing", "9"}};
  for (const Words& each : nothing) {
    (void)Do(each);
    EXPECT_EQ(Version(), before) << each[0];
  }
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(1)");
  EXPECT_EQ(Version(), before);
  EXPECT_EQ(Do({"INCR", "o-text"}), "1");
  EXPECT_EQ(Do({"SET", "text", "x"}), "OK");
  const SequenceNumber later = Version();
  EXPECT_EQ(Ask(*other, {"SET", "o", "2"}), "OK");
  EXPECT_EQ(Do({"INCR", "text"})[0], '!');
  EXPECT_EQ(Version(), later);
}

TEST_F(WaitTest, ATransactionHasTheVersionOfItsCommit) {
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"SET", "a", "1"}), "QUEUED");
  EXPECT_EQ(Do({"CLIENT", "VERSION"}), "QUEUED");
  EXPECT_EQ(Do({"INCR", "b"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(OK 0 1)");
  EXPECT_EQ(Version(), state().store->GetSnapshot()->sequence());
}

TEST_F(WaitTest, PipelinedWritesHaveTheVersionOfTheLast) {
  for (int i = 0; i < 100; ++i) {
    const std::string key = fmt::format("k{}", i);
    const std::vector<std::string_view> set = {"SET", key, "v"};
    ASSERT_TRUE(client_->Send(set).ok());
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(End(*client_), "OK");
  EXPECT_EQ(Version(), state().store->GetSnapshot()->sequence());
}

// --- WAIT ----------------------------------------------------------------------------------------

TEST_F(WaitTest, WaitCountsFollowersThatHaveTheLastWriteOnDisk) {
  EXPECT_EQ(Do({"WAIT", "0", "0"}), "0");
  Join("a", 7001);
  Join("b", 7002);
  Join("c", 7003, /*copies=*/true);
  EXPECT_EQ(Do({"WAIT", "2", "0"}), "2") << "nothing was written";
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"WAIT", "0", "0"}), "0");
  EXPECT_EQ(Do({"WAIT", "-1", "0"}), "0");
  EXPECT_EQ(Do({"WAIT", "1", "10"}), "0") << "the time was over";
  Note("a", Version());
  EXPECT_EQ(Do({"WAIT", "1", "0"}), "1");
  EXPECT_EQ(Do({"WAIT", "2", "1"}), "1");
  // In memory is not enough.
  EXPECT_TRUE(followers().Note("b", Version(), Version() - 1, std::chrono::steady_clock::now()));
  EXPECT_EQ(Do({"WAIT", "2", "1"}), "1");
}

TEST_F(WaitTest, WaitAnswersAsSoonAsEnoughFollowersHaveIt) {
  Join("a", 7001);
  Join("b", 7002);
  const std::unique_ptr<Client> waiting = Begin({"WAIT", "2", "0"}, {"SET", "k", "v"});
  EXPECT_EQ(Info("clients", "blocked_clients"), "1");
  const SequenceNumber version = state().store->GetSnapshot()->sequence();
  Note("a", version);
  EXPECT_EQ(Do({"PING"}), "PONG");
  Note("b", version + 5);
  EXPECT_EQ(End(*waiting), "2");
  EXPECT_EQ(Info("clients", "blocked_clients"), "0");
}

TEST_F(WaitTest, AWaitHoldsNoThread) {
  constexpr size_t kWaiting = 300;  // many times the threads of the pool
  std::vector<std::unique_ptr<Client>> waiting;
  for (size_t i = 0; i < kWaiting; ++i)
    waiting.push_back(Begin({"WAIT", "1", "0"}, {"SET", fmt::format("k{}", i), "v"}));
  EXPECT_EQ(Do({"SAVE"}), "OK") << "which a thread of the pool executes";
  Join("a", 7001);
  Note("a", state().store->GetSnapshot()->sequence());
  for (const std::unique_ptr<Client>& each : waiting) EXPECT_EQ(End(*each), "1");
}

TEST_F(WaitTest, WaitRefusesWhatIsNoNumberAndFollowers) {
  EXPECT_EQ(Do({"WAIT", "x", "10"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"WAIT", "1", "x"}), "!ERR timeout is not an integer or out of range");
  EXPECT_EQ(Do({"WAIT", "1", "-1"}), "!ERR timeout is negative");
  EXPECT_EQ(Do({"WAIT", "1", "9223372036854775807"}), "!ERR timeout is out of range");
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  EXPECT_EQ(Do({"WAIT", "x", "x"}),
            "!ERR WAIT cannot be used with replica instances. Please also note that since Redis "
            "4.0 if a replica is configured to be writable (which is not the default) writes to "
            "replicas are just local and are not propagated.");
}

TEST_F(WaitTest, NothingWaitsInsideMulti) {
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  const SequenceNumber version = Version();
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"WAIT", "3", "0"}), "QUEUED");
  EXPECT_EQ(Do({"WAITAOF", "0", "3", "0"}), "QUEUED");
  EXPECT_EQ(Do({"READAFTER", "1000", "0"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}),
            fmt::format("(0 (1 0) !TIMEOUT this server has version {}, not 1000 yet)", version));
}

TEST_F(WaitTest, ClientUnblockEndsTheWait) {
  for (const char* reason : {"TIMEOUT", "ERROR"}) {
    std::unique_ptr<Client> waiting = server_.Connect();
    const std::string id = Ask(*waiting, {"CLIENT", "ID"});
    EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id, reason}), "0");
    const std::vector<std::string_view> request = {"WAIT", "1", "0"};
    ASSERT_TRUE(waiting->Send(request).ok());
    waiting->pipeline().Flush();
    EXPECT_TRUE(testing::Eventually([&] { return state().clients.changes.blocked() == 1; }));
    EXPECT_EQ(Do({"CLIENT", "UNBLOCK", id, reason}), "1");
    EXPECT_EQ(End(*waiting), std::string(reason) == "TIMEOUT"
                                 ? "0"
                                 : "!UNBLOCKED client unblocked via CLIENT UNBLOCK");
    EXPECT_EQ(Ask(*waiting, {"PING"}), "PONG");
  }
}

TEST_F(WaitTest, AConnectionThatWaitsMayVanish) {
  { const std::unique_ptr<Client> waiting = Begin({"WAIT", "1", "0"}); }
  EXPECT_TRUE(testing::Eventually([&] { return state().clients.changes.blocked() == 0; }));
  const std::unique_ptr<Client> waiting = Begin({"WAIT", "1", "0"});
  server_.server().Stop();
  EXPECT_EQ(End(*waiting), "0") << "a stop answers what was read";
}

// --- WAITAOF -------------------------------------------------------------------------------------

TEST_F(WaitTest, WaitAofAnswersForThisDiskAndThoseOfFollowers) {
  EXPECT_EQ(Do({"WAITAOF", "0", "0", "0"}), "(1 0)");
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"WAITAOF", "1", "0", "0"}), "(1 0)");
  EXPECT_EQ(Do({"WAITAOF", "1", "1", "5"}), "(1 0)");
  Join("a", 7001);
  Note("a", Version());
  EXPECT_EQ(Do({"WAITAOF", "1", "1", "0"}), "(1 1)");
  EXPECT_EQ(Do({"WAITAOF", "2", "0", "0"}),
            "!ERR value is out of range, value must between 0 and 1");
  EXPECT_EQ(Do({"WAITAOF", "x", "0", "0"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"WAITAOF", "0", "-1", "0"}), "!ERR value is out of range, must be positive");
  EXPECT_EQ(Do({"WAITAOF", "0", "0", "-1"}), "!ERR timeout is negative");
  EXPECT_EQ(Do({"WAITAOF", "0", "0"}), "!ERR wrong number of arguments for 'waitaof' command");
  EXPECT_EQ(Do({"REPLICAOF", "other", "7000"}), "OK");
  EXPECT_EQ(Do({"WAITAOF", "1", "0", "0"}),
            "!ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
            "replicas are just local and are not propagated.");
}

TEST_F(WaitTest, WaitAofPutsOnDiskWhatItsModeDoesNot) {
  EXPECT_EQ(Do({"CONFIG", "SET", "sync", "no"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  const SequenceNumber version = Version();
  EXPECT_LT(state().store->durable_sequence(), version);
  EXPECT_EQ(Do({"WAITAOF", "1", "0", "0"}), "(1 0)");
  EXPECT_GE(state().store->durable_sequence(), version);
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"WAIT", "0", "0"}), "0");
  EXPECT_GE(state().store->durable_sequence(), Version());
}

// --- READAFTER -----------------------------------------------------------------------------------

TEST_F(WaitTest, ReadAfterAnswersOnceTheVersionIsThere) {
  EXPECT_EQ(Do({"READAFTER", "0"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  const SequenceNumber version = Version();
  const std::unique_ptr<Client> other = server_.Connect();
  EXPECT_EQ(Ask(*other, {"READAFTER", fmt::to_string(version)}), "OK");
  EXPECT_EQ(Ask(*other, {"READAFTER", fmt::to_string(version + 1), "10"}),
            fmt::format("!TIMEOUT this server has version {}, not {} yet", version, version + 1));
  for (const char* timeout : {"0", "60000"}) {
    const SequenceNumber next = Version() + 1;
    const std::unique_ptr<Client> waiting = Begin({"READAFTER", fmt::to_string(next), timeout});
    EXPECT_EQ(Do({"SET", "k", "w"}), "OK");
    EXPECT_EQ(End(*waiting), "OK");
  }
}

TEST_F(WaitTest, ReadAfterWaitsWhateverTheModeOfTheWrite) {
  for (const char* mode : {"no", "everysec"}) {
    EXPECT_EQ(Do({"CONFIG", "SET", "sync", mode}), "OK");
    EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
    EXPECT_EQ(Do({"READAFTER", fmt::to_string(Version()), "60000"}), "OK") << mode;
  }
}

TEST_F(WaitTest, ReadAfterRefusesWhatIsNoVersion) {
  for (const char* version : {"x", "-1", "", "1.5", "9223372036854775808"})
    EXPECT_EQ(Do({"READAFTER", version}), "!ERR version is not an integer or out of range");
  EXPECT_EQ(Do({"READAFTER", "1", "x"}), "!ERR timeout is not an integer or out of range");
  EXPECT_EQ(Do({"READAFTER", "1", "-1"}), "!ERR timeout is negative");
  EXPECT_EQ(Do({"READAFTER", "1", "1", "1"}),
            "!ERR wrong number of arguments for 'readafter' command");
  EXPECT_EQ(Do({"READAFTER"}), "!ERR wrong number of arguments for 'readafter' command");
}

}  // namespace
}  // namespace varve
