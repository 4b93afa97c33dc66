// Where keys that expire, databases and MULTI meet, over a socket.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestServer;

class ExpiryInDatabasesTest : public ::testing::Test {
 protected:
  std::string Do(const std::vector<std::string>& arguments) {
    return testing::Ask(*client_, arguments);
  }
  std::string Other(const std::vector<std::string>& arguments) {
    return testing::Ask(*other_, arguments);
  }
  // MULTI, the requests, EXEC; the reply to EXEC.
  std::string Transact(const std::vector<std::vector<std::string>>& requests) {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    for (const auto& request : requests) EXPECT_EQ(Do(request), "QUEUED");
    return Do({"EXEC"});
  }

  EngineOptions Engine() {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = &clock_;
    return options;
  }

  ManualClock clock_;
  TestServer server_{{}, Engine()};
  std::unique_ptr<Client> client_ = server_.Connect();
  std::unique_ptr<Client> other_ = server_.Connect();
};

TEST_F(ExpiryInDatabasesTest, KeysTakeTheirExpiryAlong) {
  Do({"SET", "a", "1", "EX", "10"});
  EXPECT_EQ(Do({"RENAME", "a", "b"}), "OK");
  EXPECT_EQ(Do({"TTL", "b"}), "10");
  EXPECT_EQ(Do({"COPY", "b", "c", "DB", "1"}), "1");
  EXPECT_EQ(Do({"MOVE", "b", "2"}), "1");
  for (const auto& [database, key] : {std::pair("1", "c"), std::pair("2", "b")}) {
    EXPECT_EQ(Do({"SELECT", database}), "OK");
    EXPECT_EQ(Do({"TTL", key}), "10");
    EXPECT_EQ(Do({"EXPIRE", key, "20"}), "1");
    EXPECT_EQ(Do({"APPEND", key, "2"}), "2");
    EXPECT_EQ(Do({"GETEX", key, "EX", "30"}), "12");
    EXPECT_EQ(Do({"SET", key, "3", "KEEPTTL"}), "OK");
    EXPECT_EQ(Do({"TTL", key}), "30");
  }
  EXPECT_EQ(Do({"SWAPDB", "1", "2"}), "OK");
  EXPECT_EQ(Do({"TTL", "c"}), "30");
  clock_.Advance(30000);
  EXPECT_EQ(Do({"GET", "c"}), "nil");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
  EXPECT_EQ(Do({"APPEND", "c", "new"}), "3");
  EXPECT_EQ(Do({"TTL", "c"}), "-1") << "nothing is left of the old key";
}

TEST_F(ExpiryInDatabasesTest, ADefaultExpiryEndsWithTheLastInstant) {
  Do({"SELECT", "1"});
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "1", "PX", "9223372036854775807"}), "OK");
  Do({"SET", "k", "v"});
  EXPECT_EQ(Do({"PEXPIRETIME", "k"}), "9223372036854775807");
  EXPECT_EQ(Do({"RANGE", "-", "+", "WITHEXPIRY"}), "(k v 9223372036854775807)");
}

TEST_F(ExpiryInDatabasesTest, ADefaultExpiryIsForWhatBringsNone) {
  EXPECT_EQ(Do({"SELECT", "1"}), "OK");
  Do({"SET", "old", "1"});
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "1", "EX", "10"}), "OK");
  EXPECT_EQ(Do({"TTL", "old"}), "-1");
  EXPECT_EQ(Do({"INCR", "old"}), "2");
  EXPECT_EQ(Do({"TTL", "old"}), "-1") << "a change is no new key";
  Do({"SET", "set", "1"});
  Do({"MSET", "mset", "1"});
  Do({"SETNX", "setnx", "1"});
  Do({"APPEND", "append", "1"});
  Do({"INCR", "incr"});
  Do({"PUT", "put", "1"});
  Do({"SETBIT", "setbit", "1", "1"});
  EXPECT_EQ(Transact({{"SET", "exec", "1"}}), "(OK)");
  for (const char* key : {"set", "mset", "setnx", "append", "incr", "put", "setbit", "exec"}) {
    EXPECT_EQ(Do({"TTL", key}), "10") << key;
  }
  EXPECT_EQ(Do({"SET", "own", "1", "EX", "20"}), "OK");
  EXPECT_EQ(Do({"TTL", "own"}), "20");
  EXPECT_EQ(Do({"PERSIST", "set"}), "1");
  EXPECT_EQ(Do({"TTL", "set"}), "-1");
  EXPECT_EQ(Do({"RENAME", "old", "renamed"}), "OK");
  EXPECT_EQ(Do({"TTL", "renamed"}), "-1");
  EXPECT_EQ(Do({"SELECT", "0"}), "OK");
  Do({"SET", "a", "1"});
  EXPECT_EQ(Do({"TTL", "a"}), "-1");
}

TEST_F(ExpiryInDatabasesTest, ExecHasOneInstant) {
  Do({"SET", "a", "1", "PX", "10000"});
  EXPECT_EQ(Transact({{"SET", "b", "1", "PX", "5000"},
                      {"PTTL", "a"},
                      {"PTTL", "b"},
                      {"EXPIRE", "a", "20"},
                      {"TTL", "a"},
                      {"PERSIST", "b"},
                      {"TTL", "b"},
                      {"PEXPIREAT", "b", "1"},
                      {"EXISTS", "b"},
                      {"DBSIZE"}}),
            "(OK 10000 5000 1 20 1 -1 1 0 1)");
  clock_.Advance(20000);
  EXPECT_EQ(Transact({{"GET", "a"}, {"DBSIZE"}, {"KEYS", "*"}, {"RANDOMKEY"}}), "(nil 0 () nil)");
}

TEST_F(ExpiryInDatabasesTest, SelectInsideMultiHoldsFromThereOn) {
  EXPECT_EQ(
      Transact({{"SET", "a", "0"}, {"SELECT", "5"}, {"SET", "a", "5"}, {"GET", "a"}, {"DBSIZE"}}),
      "(OK OK OK 5 1)");
  EXPECT_EQ(Do({"GET", "a"}), "5") << "and behind it";
  EXPECT_EQ(Do({"SELECT", "0"}), "OK");
  EXPECT_EQ(Do({"GET", "a"}), "0");
  EXPECT_EQ(Transact({{"SWAPDB", "0", "5"},
                      {"GET", "a"},
                      {"SET", "b", "1"},
                      {"MOVE", "b", "6"},
                      {"COPY", "a", "c", "DB", "5"},
                      {"FLUSHDB"},
                      {"SELECT", "5"},
                      {"MGET", "a", "c"}}),
            "(OK 5 OK 1 1 OK OK (0 5))");
  EXPECT_EQ(Do({"DBSIZE"}), "2");
  EXPECT_EQ(Other({"DBSIZE"}), "0");
  EXPECT_EQ(Other({"SELECT", "6"}), "OK");
  EXPECT_EQ(Other({"GET", "b"}), "1");
  EXPECT_EQ(Transact({{"SELECT", "9"}, {"SET", "x", "1"}, {"FLUSHALL"}, {"DBSIZE"}}),
            "(OK OK OK 0)");
  EXPECT_EQ(Other({"DBSIZE"}), "0");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "!ERR Command not allowed inside a transaction");
}

TEST_F(ExpiryInDatabasesTest, AKeyThatExpiresIsWatched) {
  Do({"SET", "a", "1", "EX", "10"});
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  clock_.Advance(10000);
  EXPECT_EQ(Transact({{"SET", "b", "1"}}), "nil");
  EXPECT_EQ(Do({"EXISTS", "b"}), "0");
}

TEST_F(ExpiryInDatabasesTest, AKeyThatHadExpiredCountsAsMissing) {
  const std::vector<std::vector<std::string>> harmless = {{"DBSIZE"}, {"DEL", "a"}, {"FLUSHDB"}};
  for (const std::vector<std::string>& request : harmless) {
    Do({"SET", "a", "1", "EX", "10"});
    clock_.Advance(10000);
    EXPECT_EQ(Do({"WATCH", "a"}), "OK");
    Other(request);
    EXPECT_EQ(Transact({{"SET", "b", "1"}}), "(OK)") << request[0];
  }
  Do({"SET", "a", "1", "EX", "10"});
  clock_.Advance(10000);
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  Other({"SET", "a", "1"});
  Other({"DEL", "a"});
  EXPECT_EQ(Transact({{"SET", "b", "1"}}), "nil");
}

TEST_F(ExpiryInDatabasesTest, KeysAreWatchedInTheirDatabase) {
  Do({"SET", "a", "1"});
  EXPECT_EQ(Other({"SELECT", "1"}), "OK");
  Other({"SET", "a", "1"});
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  Other({"SET", "a", "2"});
  EXPECT_EQ(Transact({{"GET", "a"}}), "(1)");
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  EXPECT_EQ(Do({"SELECT", "1"}), "OK");
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  Other({"SET", "a", "3"});
  EXPECT_EQ(Transact({{"GET", "a"}}), "nil");
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  Other({"SWAPDB", "0", "1"});
  EXPECT_EQ(Transact({{"GET", "a"}}), "nil");
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  Other({"FLUSHDB"});
  EXPECT_EQ(Transact({{"GET", "a"}}), "nil");
  EXPECT_EQ(Do({"WATCH", "a"}), "OK");
  Other({"FLUSHDB"});
  EXPECT_EQ(Transact({{"GET", "a"}}), "(nil)");
}

TEST_F(ExpiryInDatabasesTest, InfoCountsTheKeysThatExpire) {
  const auto keyspace = [&] {
    return Do({"INFO", "keyspace"}).substr(std::string("# Keyspace\r\n").size());
  };
  Do({"SET", "a", "1", "EX", "10"});
  Do({"SET", "b", "1", "EX", "30"});
  Do({"SET", "c", "1"});
  Do({"SELECT", "2"});
  Do({"SET", "d", "1", "PX", "5000"});
  EXPECT_EQ(keyspace(),
            "db0:keys=3,expires=2,avg_ttl=20000\r\ndb2:keys=1,expires=1,avg_ttl=5000\r\n");
  EXPECT_EQ(Do({"PERSIST", "d"}), "1");
  EXPECT_EQ(keyspace(), "db0:keys=3,expires=2,avg_ttl=20000\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n");
  Do({"SELECT", "0"});
  Do({"SET", "a", "again"});
  EXPECT_EQ(Do({"EXPIRE", "c", "50"}), "1");
  clock_.Advance(1000);
  EXPECT_EQ(keyspace(), "db0:keys=3,expires=2,avg_ttl=39000\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n");
  EXPECT_EQ(Transact({{"SET", "e", "1", "EX", "9"}, {"DEL", "c"}, {"INFO", "keyspace"}}),
            "(OK 1 # Keyspace\r\ndb0:keys=3,expires=2,avg_ttl=19000\r\n"
            "db2:keys=1,expires=0,avg_ttl=0\r\n)");
  client_.reset();
  other_.reset();
  server_.Restart();
  client_ = server_.Connect();
  EXPECT_EQ(keyspace(), "db0:keys=3,expires=2,avg_ttl=19000\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n");
  clock_.Advance(29'000);
  EXPECT_EQ(keyspace(), "db0:keys=1,expires=0,avg_ttl=0\r\ndb2:keys=1,expires=0,avg_ttl=0\r\n");
  Do({"FLUSHALL"});
  EXPECT_EQ(keyspace(), "");
}

}  // namespace
}  // namespace varve
