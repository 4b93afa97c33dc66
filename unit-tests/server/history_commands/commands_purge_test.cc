// PURGE, through the port: what it answers, whom it tells, who may, and what is left on disk.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/caching_client.h"
#include "unit-tests/server/event_log.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/files_with.h"

namespace varve {
namespace {

using testing::Ask;
using testing::CachingClient;
using testing::EventLog;
using testing::TestServer;
using Words = std::vector<std::string>;

class PurgeCommandTest : public ::testing::Test {
 protected:
  explicit PurgeCommandTest(const EngineOptions& options = Keeping()) : server_({}, options) {}

  static EngineOptions Keeping() {
    EngineOptions options = TestServer::SmallEngine();
    options.history.time_ms = 86'400'000;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
  }
  // Returns the names of the store's files that hold the bytes.
  std::string FilesWith(const std::string& bytes) const {
    return testing::FilesWith(server_.data_directory(), bytes);
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(PurgeCommandTest, NothingOfTheKeyIsLeft) {
  const std::string large(5000, 'L');
  EXPECT_EQ(Do({"PURGE", "person:17"}), "0");
  EXPECT_EQ(Do({"SET", "person:17", "secret-1"}), "OK");
  EXPECT_EQ(Do({"MSET", "person:1", large, "person:170", "one"}), "OK");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"SET", "person:17", large + "secret-2", "EX", "1000"}), "OK");
  EXPECT_EQ(Do({"DEL", "person:17"}), "1");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"APPEND", "person:17", "secret-3"}), "8");
  EXPECT_EQ(Do({"RENAME", "person:170", "person:171"}), "OK");
  ASSERT_NE(FilesWith("secret-"), "");
  EXPECT_EQ(Do({"PURGE", "person:17"}), "1");
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    EXPECT_EQ(FilesWith("secret-"), "");
    EXPECT_EQ(Do({"GET", "person:17"}), "nil");
    EXPECT_EQ(Do({"AT", "AGO", "0", "GET", "person:17"}), "nil");
    EXPECT_EQ(Do({"GET", "person:1"}), large);
    EXPECT_EQ(Do({"GET", "person:171"}), "one");
    EXPECT_EQ(Do({"DBSIZE"}), "2");
    EXPECT_EQ(Do({"PURGE", "person:17"}), "0");
  }
  EXPECT_EQ(Do({"SET", "person:17", "anew"}), "OK");
  EXPECT_EQ(Do({"GET", "person:17"}), "anew");
}

TEST_F(PurgeCommandTest, AnEmptiedDatabaseIsPurged) {
  EXPECT_EQ(Do({"SET", "k", "secret-1"}), "OK");
  EXPECT_EQ(Do({"FLUSHDB"}), "OK");
  ASSERT_NE(FilesWith("secret-"), "");
  EXPECT_EQ(Do({"PURGE", "k"}), "1");
  EXPECT_EQ(FilesWith("secret-"), "");
}

TEST_F(PurgeCommandTest, ACloneThatHoldsTheKeyIsNamed) {
  EXPECT_EQ(Do({"SET", "k", "secret-1"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "staging"}), "OK");
  const std::string refused = Do({"PURGE", "k"});
  EXPECT_EQ(refused.substr(0, 4), "!ERR") << refused;
  EXPECT_NE(refused.find("namespace 'staging'"), std::string::npos) << refused;
  EXPECT_EQ(Do({"GET", "k"}), "secret-1");
  EXPECT_EQ(Do({"NAMESPACE", "DROP", "staging"}), "OK");
}

TEST_F(PurgeCommandTest, CachesAndListenersHearOfIt) {
  ASSERT_EQ(Do({"CONFIG", "SET", "notify-keyspace-events", "KEA"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  CachingClient caching(server_.port());
  ASSERT_EQ(caching.Do({"CLIENT", "TRACKING", "ON"}), "OK");
  EXPECT_EQ(caching.Do({"GET", "k"}), "v");
  EventLog events(server_.port());
  EXPECT_EQ(Do({"PURGE", "k"}), "1");
  EXPECT_EQ(caching.Take(), (CachingClient::Pushes{"(invalidate (k))"}));
  EXPECT_EQ(events.Take(*client_), (Words{"__keyspace@0__:k del", "__keyevent@0__:del k"}));
  EXPECT_EQ(Do({"PURGE", "k"}), "0");
  EXPECT_EQ(events.Take(*client_), Words{});
}

TEST_F(PurgeCommandTest, RightsAndCategories) {
  EXPECT_EQ(Do({"SET", "app:1", "v"}), "OK");
  EXPECT_EQ(Do({"SET", "other:1", "v"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@all", "%R~*", "%W~app:*"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "bob", "on", "nopass", "+@all", "-@dangerous", "~*"}), "OK");
  const auto alice = server_.Connect();
  ASSERT_EQ(Ask(*alice, {"AUTH", "alice", "x"}), "OK");
  EXPECT_EQ(Ask(*alice, {"PURGE", "app:1"}), "1");
  EXPECT_EQ(Ask(*alice, {"PURGE", "other:1"}).substr(0, 7), "!NOPERM");
  const auto bob = server_.Connect();
  ASSERT_EQ(Ask(*bob, {"AUTH", "bob", "x"}), "OK");
  EXPECT_EQ(Ask(*bob, {"PURGE", "other:1"}).substr(0, 7), "!NOPERM");
  EXPECT_EQ(Do({"GET", "other:1"}), "v");
  const std::string info = Do({"COMMAND", "INFO", "PURGE"});
  for (const char* category : {"@keyspace", "@write", "@slow", "@dangerous"})
    EXPECT_NE(info.find(category), std::string::npos) << category << " in " << info;
}

TEST_F(PurgeCommandTest, WhatIsWrongIsRefused) {
  EXPECT_EQ(Do({"PURGE"}).front(), '!');
  EXPECT_EQ(Do({"PURGE", "a", "b"}).front(), '!');
  EXPECT_EQ(Do({"PURGE", std::string(100'000, 'k')}), "0");
  EXPECT_EQ(Do({"SET", "", "secret-1"}), "OK");
  EXPECT_EQ(Do({"PURGE", ""}), "1");
  EXPECT_EQ(FilesWith("secret-"), "");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"PURGE", "a"}).front(), '!');
  EXPECT_EQ(Do({"DISCARD"}), "OK");
  EXPECT_EQ(Do({"AT", "AGO", "0", "PURGE", "a"}).front(), '!');
}

TEST_F(PurgeCommandTest, TheSlowLogDoesNotNameTheKey) {
  ASSERT_EQ(Do({"CONFIG", "SET", "slowlog-log-slower-than", "0"}), "OK");
  EXPECT_EQ(Do({"PURGE", "the-name"}), "0");
  const std::string log = Do({"SLOWLOG", "GET", "10"});
  EXPECT_NE(log.find("PURGE"), std::string::npos) << log;
  EXPECT_EQ(log.find("the-name"), std::string::npos) << log;
}

// --- Retained changes ----------------------------------------------------------------------------

class PurgeChangesTest : public PurgeCommandTest {
 protected:
  PurgeChangesTest() : PurgeCommandTest(Retaining()) {}

  static EngineOptions Retaining() {
    EngineOptions options = Keeping();
    options.changes.bytes = 64u << 20;
    return options;
  }
};

TEST_F(PurgeChangesTest, ReadersOfChangesFindNothingOfTheKey) {
  EXPECT_EQ(Do({"SET", "person:1", "one"}), "OK");
  EXPECT_EQ(Do({"SET", "person:17", "secret-1"}), "OK");
  EXPECT_EQ(Do({"FEED", "CREATE", "copy", "FROM", "0"}), "OK");
  EXPECT_EQ(Do({"MSET", "person:17", "secret-2", "person:2", "two"}), "OK");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"DEL", "person:17"}), "1");
  EXPECT_EQ(Do({"SET", "person:3", "three"}), "OK");
  ASSERT_NE(Do({"CHANGES", "SINCE", "FIRST"}).find("secret-2"), std::string::npos);
  // "(value version)"
  const std::string third = Do({"GET", "person:3", "WITHVERSION"});
  const std::string id = third.substr(7, third.size() - 8) + "-0";
  ASSERT_NE(Do({"XREAD", "STREAMS", "varve:changes", "0"}).find(id), std::string::npos) << id;
  EXPECT_EQ(Do({"PURGE", "person:17"}), "1");
  EXPECT_EQ(FilesWith("secret-"), "");
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    const std::string changes = Do({"CHANGES", "SINCE", "FIRST"});
    EXPECT_EQ(changes.find("secret"), std::string::npos) << changes;
    EXPECT_EQ(changes.find("person:17"), std::string::npos) << changes;
    for (const char* key : {"person:1", "person:2", "person:3"})
      EXPECT_NE(changes.find(key), std::string::npos) << changes;
    const std::string feed = Do({"FEED", "INFO", "copy"});
    EXPECT_NE(feed.find("position 0"), std::string::npos) << feed;
    const std::string entries = Do({"XREAD", "STREAMS", "varve:changes", "0"});
    EXPECT_EQ(entries.find("person:17"), std::string::npos) << entries;
    EXPECT_NE(entries.find(id), std::string::npos) << "the ids of the others stay: " << entries;
  }
  EXPECT_EQ(Do({"SET", "person:17", "anew"}), "OK");
  EXPECT_NE(Do({"CHANGES", "SINCE", "FIRST"}).find("anew"), std::string::npos);
}

// --- Threads -------------------------------------------------------------------------------------

// Several at once, beside writers: they take turns, and all of them end.
TEST_F(PurgeCommandTest, SeveralTakeTurns) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this, i] {
      const auto client = server_.Connect();
      const std::string key = "key" + std::to_string(i);
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(Ask(*client, {"SET", key, "secret-of-" + key}), "OK");
        EXPECT_EQ(Ask(*client, {"PURGE", key}), "1");
        EXPECT_EQ(Ask(*client, {"GET", key}), "nil");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FilesWith("secret-of-"), "");
}

}  // namespace
}  // namespace varve
