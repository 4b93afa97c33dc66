// Commands on the time that keys have left: replies and errors as Redis 7.0 gives them.
#include <gtest/gtest.h>

#include <string>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::Resp;
using testing::TestServer;

class ExpiryCommandsTest : public ::testing::Test {
 protected:
  std::string Do(const std::vector<std::string>& arguments) {
    return testing::Ask(*client_, arguments);
  }
  std::string Changes() {
    const std::string info = Do({"INFO", "persistence"});
    const std::string name = "rdb_changes_since_last_save:";
    const size_t at = info.find(name) + name.size();
    return info.substr(at, info.find('\r', at) - at);
  }
  std::string In(int64_t millis) {
    return std::to_string(static_cast<int64_t>(clock_.WallMillis()) + millis);
  }

  EngineOptions Engine() {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = &clock_;
    return options;
  }

  ManualClock clock_;
  TestServer server_{{}, Engine()};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(ExpiryCommandsTest, KeysGoWhenTheirTimeIsOver) {
  EXPECT_EQ(Do({"SET", "a", "1", "EX", "10"}), "OK");
  EXPECT_EQ(Do({"SETEX", "b", "10", "1"}), "OK");
  EXPECT_EQ(Do({"PSETEX", "c", "10000", "1"}), "OK");
  EXPECT_EQ(Do({"SET", "d", "1", "PXAT", In(10000)}), "OK");
  EXPECT_EQ(Do({"SET", "e", "1"}), "OK");
  EXPECT_EQ(Do({"EXPIRE", "e", "10"}), "1");
  EXPECT_EQ(Do({"SET", "stays", "1"}), "OK");
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    EXPECT_EQ(Do({"TTL", key}), "10") << key;
    EXPECT_EQ(Do({"PTTL", key}), "10000") << key;
    EXPECT_EQ(Do({"PEXPIRETIME", key}), In(10000)) << key;
  }
  EXPECT_EQ(Do({"TTL", "stays"}), "-1");
  EXPECT_EQ(Do({"TTL", "missing"}), "-2");
  EXPECT_EQ(Do({"EXPIRETIME", "missing"}), "-2");
  clock_.Advance(9499);
  EXPECT_EQ(Do({"TTL", "a"}), "1") << "rounded";
  EXPECT_EQ(Do({"DBSIZE"}), "6");
  clock_.Advance(501);
  EXPECT_EQ(Do({"EXISTS", "a", "b", "c", "d", "e", "stays"}), "1");
  EXPECT_EQ(Do({"MGET", "a", "stays"}), "(nil 1)");
  EXPECT_EQ(Do({"KEYS", "*"}), "(stays)");
  EXPECT_EQ(Do({"SCAN", "0"}), "(0 (stays))");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(stays 1)");
  EXPECT_EQ(Do({"RANDOMKEY"}), "stays");
  EXPECT_EQ(Do({"TYPE", "a"}), "none");
  EXPECT_EQ(Do({"STRLEN", "a"}), "0");
  EXPECT_EQ(Do({"DBSIZE"}), "1");
  EXPECT_EQ(Do({"SETNX", "a", "new"}), "1");
  EXPECT_EQ(Do({"APPEND", "b", "x"}), "1");
  EXPECT_EQ(Do({"TTL", "b"}), "-1");
}

TEST_F(ExpiryCommandsTest, ARangeTellsWhenItsKeysExpire) {
  Do({"SET", "a", "1", "PXAT", "4102444800123"});
  Do({"SET", "b", "2"});
  EXPECT_EQ(Do({"RANGE", "-", "+", "WITHEXPIRY"}), "(a 1 4102444800123 b 2 -1)");
  EXPECT_EQ(Do({"RANGE", "+", "-", "REV", "KEYS", "WITHEXPIRY"}), "(b -1 a 4102444800123)");
  EXPECT_EQ(Do({"PREFIX", "b", "withexpiry", "LIMIT", "0", "1"}), "(b 2 -1)");
}

TEST_F(ExpiryCommandsTest, WhatIsRemovedIsNoChange) {
  EXPECT_EQ(Do({"SET", "a", "1", "EX", "10"}), "OK");
  EXPECT_EQ(Do({"SAVE"}), "OK");
  clock_.Advance(10000);
  EXPECT_EQ(Do({"DBSIZE"}), "0");
  EXPECT_EQ(Changes(), "0");
  EXPECT_EQ(Do({"SET", "b", "1"}), "OK");
  EXPECT_EQ(Changes(), "1");
}

TEST_F(ExpiryCommandsTest, WhatKeepsAndWhatClearsTheTime) {
  const auto renewed = [&](const std::string& value) {
    EXPECT_EQ(Do({"SET", "k", value, "EX", "100"}), "OK");
    return "k";
  };
  for (const std::vector<std::string>& keeps :
       std::vector<std::vector<std::string>>{{"INCR", "k"},
                                             {"INCRBYFLOAT", "k", "1.5"},
                                             {"APPEND", "k", "1"},
                                             {"SETRANGE", "k", "0", "2"},
                                             {"SETBIT", "k", "1", "0"},
                                             {"BITFIELD", "k", "SET", "u8", "0", "9"},
                                             {"SET", "k", "5", "KEEPTTL"},
                                             {"GET", "k"}}) {
    renewed("1");
    Do(keeps);
    EXPECT_EQ(Do({"TTL", "k"}), "100") << keeps[0];
  }
  for (const std::vector<std::string>& clears :
       std::vector<std::vector<std::string>>{{"SET", "k", "1"},
                                             {"GETSET", "k", "1"},
                                             {"MSET", "k", "1"},
                                             {"BITOP", "NOT", "k", "k"},
                                             {"PERSIST", "k"},
                                             {"GETEX", "k", "PERSIST"}}) {
    renewed("1");
    Do(clears);
    EXPECT_EQ(Do({"TTL", "k"}), "-1") << clears[0];
  }
  renewed("1");
  EXPECT_EQ(Do({"RENAME", "k", "other"}), "OK");
  EXPECT_EQ(Do({"TTL", "other"}), "100");
  EXPECT_EQ(Do({"COPY", "other", "third"}), "1");
  EXPECT_EQ(Do({"TTL", "third"}), "100");
  EXPECT_EQ(Do({"PERSIST", "third"}), "1");
  EXPECT_EQ(Do({"PERSIST", "third"}), "0");
  EXPECT_EQ(Do({"PERSIST", "missing"}), "0");
}

TEST_F(ExpiryCommandsTest, ExpireHasConditions) {
  EXPECT_EQ(Do({"EXPIRE", "k", "10"}), "0");
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"EXPIRE", "k", "10", "XX"}), "0");
  EXPECT_EQ(Do({"EXPIRE", "k", "10", "GT"}), "0") << "it lives for ever";
  EXPECT_EQ(Do({"EXPIRE", "k", "10", "LT"}), "1");
  EXPECT_EQ(Do({"EXPIRE", "k", "20", "NX"}), "0");
  EXPECT_EQ(Do({"PEXPIRE", "k", "9000", "GT"}), "0");
  EXPECT_EQ(Do({"EXPIRE", "k", "11", "gt", "xx"}), "1");
  EXPECT_EQ(Do({"EXPIREAT", "k", "99999999999", "LT"}), "0");
  EXPECT_EQ(Do({"TTL", "k"}), "11");
  EXPECT_EQ(Do({"EXPIRE", "k", "1", "NX", "XX"}),
            "!ERR NX and XX, GT or LT options at the same time are not compatible");
  EXPECT_EQ(Do({"EXPIRE", "k", "1", "GT", "LT"}),
            "!ERR GT and LT options at the same time are not compatible");
  EXPECT_EQ(Do({"EXPIRE", "k", "1", "now"}), "!ERR Unsupported option now");
  EXPECT_EQ(Do({"EXPIRE", "k", "soon"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"EXPIRE", "k", "9223372036854775807"}),
            "!ERR invalid expire time in 'expire' command");
  EXPECT_EQ(Do({"PEXPIRE", "k", "9223372036854775807"}),
            "!ERR invalid expire time in 'pexpire' command");
  EXPECT_EQ(Do({"SET", "last", "1", "PXAT", "9223372036854775807"}), "OK");
  EXPECT_EQ(Do({"EXPIRETIME", "last"}), "9223372036854776");
  EXPECT_EQ(Do({"EXPIRE", "k", "-1"}), "1");
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
  EXPECT_EQ(Do({"SETEX", "k", "0", "v"}), "!ERR invalid expire time in 'setex' command");
}

TEST_F(ExpiryCommandsTest, GetExReadsAndChanges) {
  EXPECT_EQ(Do({"GETEX", "k", "EX", "what"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"GETEX", "k"}), "v");
  EXPECT_EQ(Do({"GETEX", "k", "EX", "10"}), "v");
  EXPECT_EQ(Do({"TTL", "k"}), "10");
  EXPECT_EQ(Do({"GETEX", "k", "PXAT", In(5000)}), "v");
  EXPECT_EQ(Do({"PTTL", "k"}), "5000");
  EXPECT_EQ(Do({"GETEX", "k", "EX", "what"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"GETEX", "k", "EX", "0"}), "!ERR invalid expire time in 'getex' command");
  EXPECT_EQ(Do({"GETEX", "k", "EX"}), "!ERR syntax error");
  EXPECT_EQ(Do({"GETEX", "k", "PERSIST", "EX", "1"}), "!ERR syntax error");
  EXPECT_EQ(Do({"GETEX", "k", "EX", "1", "PX", "1"}), "!ERR syntax error");
  EXPECT_EQ(Do({"GETEX", "k", "EX", "1", "EX", "100"}), "v") << "the last one counts, as in Redis";
  EXPECT_EQ(Do({"TTL", "k"}), "100");
  EXPECT_EQ(Do({"SET", "k", "v", "EX", "1", "PX", "1"}), "!ERR syntax error");
  EXPECT_EQ(Do({"SET", "k", "v", "EX", "1", "EX", "200"}), "OK");
  EXPECT_EQ(Do({"TTL", "k"}), "200");
  EXPECT_EQ(Do({"GETEX", "k", "EXAT", "1"}), "v") << "long ago";
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
}

TEST_F(ExpiryCommandsTest, ARestartChangesNothing) {
  EXPECT_EQ(Do({"SET", "k", "v", "PX", "1000"}), "OK");
  EXPECT_EQ(Do({"SET", "gone", "v", "PX", "100"}), "OK");
  clock_.Advance(400);
  EXPECT_EQ(Do({"EXISTS", "gone"}), "0");
  client_.reset();
  server_.Restart();
  client_ = server_.Connect();
  clock_.SetWall(ManualClock::kStart - 1000);
  EXPECT_EQ(Do({"EXISTS", "gone"}), "0") << "whatever the clock says";
  EXPECT_EQ(Do({"GET", "k"}), "v");
  clock_.SetWall(ManualClock::kStart + 1000);
  EXPECT_EQ(Do({"GET", "k"}), "nil");
}

}  // namespace
}  // namespace varve
