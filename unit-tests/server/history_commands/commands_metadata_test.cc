// Metadata of values, and ranges from a version on.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ManualClock;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

class MetadataCommandsTest : public ::testing::Test {
 protected:
  static EngineOptions Options(const ManualClock* clock) {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = clock;
    options.history.time_ms = 86'400'000;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  std::string Version(const std::string& key) {
    const std::string both = Do({"GET", key, "WITHVERSION"});
    return both.substr(both.rfind(' ') + 1, both.size() - both.rfind(' ') - 2);
  }
  // The metadata, "nil" for none.
  std::string Meta(const std::string& key) {
    const std::string all = Do({"GET", key, "WITHMETA"});
    return all == "nil" ? "(missing)"
                        : all.substr(all.rfind(' ') + 1, all.size() - all.rfind(' ') - 2);
  }
  // The request writes `k` and answers its new version.
  void ExpectNewVersion(const Words& request) {
    const std::string answer = Do(request);
    EXPECT_EQ(answer, Version("k")) << request[0];
  }
  uint64_t Figure(const std::string& name) {
    for (const auto& [key, value] : server_.store().Statistics())
      if (key == name) return value;
    ADD_FAILURE() << name;
    return 0;
  }

  ManualClock clock_;
  TestServer server_{{}, Options(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(MetadataCommandsTest, AValueIsWrittenAndReadWithIt) {
  EXPECT_EQ(Do({"GET", "k", "WITHMETA"}), "nil");
  EXPECT_EQ(Do({"META", "GET", "k"}), "nil");
  EXPECT_EQ(Do({"SET", "k", "value", "META", "m"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "value");
  const std::string version = Version("k");
  EXPECT_EQ(Do({"GET", "k", "withmeta"}), "(value " + version + " m)");
  EXPECT_EQ(Do({"META", "GET", "k"}),
            fmt::format("(version {} modified_ms {} expires_ms -1 bytes 5 meta m)", version,
                        clock_.WallMillis()));
  const uint64_t written_ms = clock_.WallMillis();
  clock_.Advance(60'000);
  EXPECT_EQ(Do({"SET", "other", "x"}), "OK");
  EXPECT_NE(Do({"META", "GET", "k"}).find(fmt::format("modified_ms {} ", written_ms)),
            std::string::npos);
  EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_EQ(Do({"GET", "k", "WITHMETA"}), "(v " + Version("k") + " nil)");
  EXPECT_NE(Do({"META", "GET", "k"}).find("bytes 1 meta nil"), std::string::npos);
  EXPECT_EQ(Do({"AT", version, "GET", "k", "WITHMETA"}), "(value " + version + " m)");
  EXPECT_EQ(Do({"GET", "k", "WITHMETA", "AT", version}), "(value " + version + " m)");
  EXPECT_EQ(
      Do({"AT", version, "META", "GET", "k"}),
      fmt::format("(version {} modified_ms {} expires_ms -1 bytes 5 meta m)", version, written_ms));
  EXPECT_EQ(Do({"AT", version, "META", "SET", "k", "x"}).front(), '!');
}

TEST_F(MetadataCommandsTest, ItGoesWithTheOtherOptionsOfSet) {
  const std::string instant = std::to_string(clock_.WallMillis() + 100'000);
  EXPECT_EQ(Do({"SET", "k", "1", "META", "m1", "NX", "PXAT", instant}), "OK");
  EXPECT_EQ(Do({"SET", "k", "2", "NX", "META", "m2"}), "nil");
  EXPECT_EQ(Meta("k"), "m1");
  EXPECT_EQ(Do({"SET", "k", "2", "KEEPTTL", "META", "m2", "GET"}), "1");
  EXPECT_EQ(Do({"PEXPIRETIME", "k"}), instant);
  EXPECT_EQ(Meta("k"), "m2");
  EXPECT_EQ(Do({"SET", "k", "3", "KEEPMETA"}), "OK");
  EXPECT_EQ(Do({"PTTL", "k"}), "-1");
  EXPECT_EQ(Meta("k"), "m2");
  const std::string version = Version("k");
  ExpectNewVersion({"PUT", "k", "4", "IFVERSION", version, "META", "m4"});
  EXPECT_EQ(Meta("k"), "m4");
  EXPECT_EQ(Do({"SET", "k", "5", "META", ""}), "OK");
  EXPECT_EQ(Meta("k"), "nil");
  EXPECT_EQ(Do({"SET", "new", "5", "KEEPMETA"}), "OK");
  EXPECT_EQ(Meta("new"), "nil");
  EXPECT_EQ(Do({"SET", "k", "5", "META"}), "!ERR syntax error");
  EXPECT_EQ(Do({"SET", "k", "5", "META", "m", "KEEPMETA"}), "!ERR syntax error");
  EXPECT_EQ(Do({"SET", "k", "5", "KEEPMETA", "META", "m"}), "!ERR syntax error");
  const std::string largest(64 << 10, 'm');
  EXPECT_EQ(Do({"SET", "k", "6", "META", largest}), "OK");
  EXPECT_EQ(Meta("k"), largest);
  EXPECT_EQ(Do({"SET", "k", "7", "META", largest + "m"}).substr(0, 14), "!ERR metadata ");
  EXPECT_EQ(Do({"META", "SET", "k", largest + "m"}).substr(0, 14), "!ERR metadata ");
  EXPECT_EQ(Do({"GET", "k"}), "6");
}

TEST_F(MetadataCommandsTest, MetaSetChangesTheMetadataAlone) {
  EXPECT_EQ(Do({"META", "SET", "k", "m"}), "nil");
  EXPECT_EQ(Do({"META", "SET", "k", "m", "IFVERSION", "0"}), "nil");
  EXPECT_EQ(Do({"EXISTS", "k"}), "0");
  const std::string instant = std::to_string(clock_.WallMillis() + 100'000);
  EXPECT_EQ(Do({"SET", "k", "value", "PXAT", instant}), "OK");
  const std::string first = Version("k");
  const std::string second = Do({"META", "SET", "k", "m"});
  EXPECT_EQ(second, Version("k"));
  EXPECT_NE(second, first);
  EXPECT_EQ(Do({"GET", "k", "WITHMETA"}), "(value " + second + " m)");
  EXPECT_EQ(Do({"PEXPIRETIME", "k"}), instant);
  EXPECT_EQ(Do({"META", "SET", "k", "n", "IFVERSION", first}), "nil");
  EXPECT_EQ(Meta("k"), "m");
  ExpectNewVersion({"META", "SET", "k", "n", "IFVERSION", second});
  EXPECT_EQ(Meta("k"), "n");
  ExpectNewVersion({"META", "SET", "k", ""});
  EXPECT_EQ(Meta("k"), "nil");
  EXPECT_EQ(Do({"META", "SET", "k", "x", "IFVERSION"}), "!ERR syntax error");
  EXPECT_EQ(Do({"META", "SET", "k", "x", "IFEQ", "value"}), "!ERR syntax error");
  EXPECT_EQ(Do({"META", "SET", "k", "x", "IFVERSION", "one"}).front(), '!');
  EXPECT_EQ(Do({"META", "SET", "k"}).front(), '!');
  EXPECT_EQ(Do({"META", "NONE", "k"}).front(), '!');
  EXPECT_EQ(Do({"META"}).front(), '!');
  EXPECT_EQ(Do({"META", "HELP"}).front(), '(');
}

TEST_F(MetadataCommandsTest, WhatChangesAValueKeepsIt) {
  EXPECT_EQ(Do({"SET", "k", "10", "META", "m"}), "OK");
  for (const Words& request : std::vector<Words>{{"APPEND", "k", "0"},
                                                 {"INCR", "k"},
                                                 {"DECRBY", "k", "1"},
                                                 {"INCRBYFLOAT", "k", "1.5"},
                                                 {"SETRANGE", "k", "1", "x"},
                                                 {"SETBIT", "k", "100", "1"},
                                                 {"BITFIELD", "k", "SET", "u8", "0", "49"},
                                                 {"EXPIRE", "k", "1000"},
                                                 {"PEXPIREAT", "k", "99999999999999"},
                                                 {"PERSIST", "k"},
                                                 {"GETEX", "k", "EX", "1000"},
                                                 {"GETEX", "k", "PERSIST"},
                                                 {"GETEX", "k"},
                                                 {"COPY", "k", "copy"},
                                                 {"RENAME", "k", "k2"},
                                                 {"RENAMENX", "k2", "k"}}) {
    EXPECT_NE(Do(request).front(), '!') << request[0];
    if (request[0] != "RENAME") EXPECT_EQ(Meta("k"), "m") << request[0];
  }
  EXPECT_EQ(Meta("copy"), "m");
  EXPECT_EQ(Meta("k2"), "(missing)");
  EXPECT_EQ(Do({"COPY", "k", "k", "DB", "3"}), "1");
  EXPECT_EQ(Do({"MOVE", "copy", "3"}), "1");
  EXPECT_EQ(Do({"SWAPDB", "0", "3"}), "OK");
  EXPECT_EQ(Meta("k"), "m");
  EXPECT_EQ(Meta("copy"), "m");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "twin"}), "OK");
  EXPECT_EQ(Do({"FLUSHDB"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "USE", "twin"}), "OK");
  EXPECT_EQ(Meta("k"), "m");
  client_.reset();
  server_.Restart();
  client_ = server_.Connect();
  EXPECT_EQ(Do({"NAMESPACE", "USE", "twin"}), "OK");
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Meta("k"), "m");

  for (const Words& request : std::vector<Words>{{"SET", "k", "1"},
                                                 {"GETSET", "k", "1"},
                                                 {"MSET", "k", "1"},
                                                 {"SETEX", "k", "100", "1"},
                                                 {"BITOP", "NOT", "k", "copy"}}) {
    EXPECT_EQ(Do({"SET", "k", "10", "META", "m"}), "OK");
    EXPECT_NE(Do(request).front(), '!') << request[0];
    EXPECT_EQ(Meta("k"), "nil") << request[0];
  }
}

TEST_F(MetadataCommandsTest, ExecKeepsToTheSameRules) {
  EXPECT_EQ(Do({"SET", "old", "1", "META", "m"}), "OK");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  for (const Words& request : std::vector<Words>{{"SET", "k", "v", "META", "m"},
                                                 {"APPEND", "k", "w"},
                                                 {"GET", "k", "WITHMETA"},
                                                 {"META", "GET", "k"},
                                                 {"META", "SET", "k", "n"},
                                                 {"META", "SET", "missing", "n"},
                                                 {"RANGE", "-", "+", "KEYS", "WITHMETA"},
                                                 {"EXPIRE", "old", "1000"}}) {
    EXPECT_EQ(Do(request), "QUEUED");
  }
  EXPECT_EQ(Do({"EXEC"}),
            "(OK 2 (vw nil m) (version nil modified_ms nil expires_ms -1 bytes 2 meta m) OK nil "
            "(k n old m) 1)");
  EXPECT_EQ(Meta("k"), "n");
  EXPECT_EQ(Meta("old"), "m");
}

TEST_F(MetadataCommandsTest, RangesTellVersionsAndMetadata) {
  EXPECT_EQ(Do({"SET", "a", "1", "META", "m"}), "OK");
  EXPECT_EQ(Do({"SET", "b", "2"}), "OK");
  const std::string a = Version("a"), b = Version("b");
  EXPECT_EQ(Do({"RANGE", "-", "+", "WITHMETA"}), "(a 1 m b 2 nil)");
  EXPECT_EQ(Do({"RANGE", "-", "+", "WITHVERSION"}), "(a 1 " + a + " b 2 " + b + ")");
  EXPECT_EQ(Do({"PREFIX", "", "KEYS", "WITHMETA", "WITHVERSION", "WITHEXPIRY", "REV"}),
            "(b -1 " + b + " nil a -1 " + a + " m)");
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", a}), "(b 2)");
  EXPECT_EQ(Do({"PREFIX", "a", "SINCE", a}), "()");
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", "0", "LIMIT", "1", "1"}), "(b 2)");
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", b}), "()");
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", "99999999"}), "()");
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", "-1"}).front(), '!');
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", "x"}).front(), '!');
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE"}), "!ERR syntax error");
  EXPECT_EQ(Do({"DEL", "a"}), "1");
  EXPECT_EQ(Do({"RANGE", "-", "+", "SINCE", "0", "AT", b}), "(a 1 b 2)");
}

TEST_F(MetadataCommandsTest, AVersionBoundsARangeToWhatIsNewer) {
  std::mt19937 random(7);
  std::map<std::string, uint64_t> versions;
  const auto key = [&] { return fmt::format("key{:04}", random() % 2000); };
  const auto write = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::string name = key();
      if (random() % 5 == 0) {
        Do({"DEL", name});
        versions.erase(name);
      } else {
        ASSERT_EQ(Do({"SET", name, std::string(100, 'v'), "META", "m"}), "OK");
        versions[name] = std::stoull(Version(name));
      }
    }
  };
  const auto expected = [&](uint64_t since) {
    std::string text;
    for (const auto& [name, version] : versions) {
      if (version > since) text += fmt::format("{}{} {} m", text.empty() ? "" : " ", name, version);
    }
    return "(" + text + ")";
  };
  const auto ask = [&](uint64_t since) {
    return Do(
        {"RANGE", "-", "+", "KEYS", "WITHVERSION", "WITHMETA", "SINCE", std::to_string(since)});
  };
  write(3000);
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  const std::string mark = (Do({"SET", "key0000", "mark", "META", "m"}), Version("key0000"));
  const uint64_t since = versions["key0000"] = std::stoull(mark);
  write(60);
  EXPECT_EQ(ask(since), expected(since));
  EXPECT_EQ(ask(since - 1), expected(since - 1));
  EXPECT_EQ(ask(since / 2), expected(since / 2));
  ASSERT_TRUE(server_.store().Flush().ok());
  const uint64_t before = Figure("scan_reads");
  EXPECT_EQ(ask(since), expected(since));
  const uint64_t newer = Figure("scan_reads") - before;
  EXPECT_EQ(ask(0), expected(0));
  const uint64_t all = Figure("scan_reads") - before - newer;
  EXPECT_LT(newer, all) << "reads of newer segments alone, and of all";
}

TEST_F(MetadataCommandsTest, RightsHold) {
  EXPECT_EQ(Do({"MSET", "own:a", "1", "other", "2"}), "OK");
  EXPECT_EQ(Do({"META", "SET", "other", "secret"}).front() == '!', false);
  EXPECT_EQ(Do({"ACL", "SETUSER", "reader", "on", ">pw", "resetkeys", "%R~own:*", "+@read"}), "OK");
  EXPECT_EQ(Do({"ACL", "SETUSER", "writer", "on", ">pw", "resetkeys", "~own:*", "+@write"}), "OK");
  EXPECT_EQ(Do({"ACL", "SETUSER", "blind", "on", ">pw", "resetkeys", "%W~own:*", "+@all"}), "OK");
  const auto as = [&](const std::string& user, const Words& request) {
    const std::unique_ptr<Client> client = server_.Connect();
    EXPECT_EQ(Ask(*client, {"AUTH", user, "pw"}), "OK");
    return Ask(*client, request);
  };
  const auto refused = [](const std::string& reply) { return reply.starts_with("!NOPERM"); };
  EXPECT_FALSE(refused(as("reader", {"META", "GET", "own:a"})));
  EXPECT_TRUE(refused(as("reader", {"META", "GET", "other"})));
  EXPECT_TRUE(refused(as("reader", {"GET", "other", "WITHMETA"})));
  EXPECT_TRUE(refused(as("reader", {"META", "SET", "own:a", "m"})));
  EXPECT_EQ(as("reader", {"RANGE", "-", "+", "KEYS", "WITHMETA", "SINCE", "0"}), "(own:a nil)");
  EXPECT_FALSE(refused(as("writer", {"META", "SET", "own:a", "m"})));
  EXPECT_TRUE(refused(as("writer", {"META", "SET", "other", "m"})));
  EXPECT_TRUE(refused(as("writer", {"META", "GET", "own:a"})));
  EXPECT_TRUE(refused(as("blind", {"META", "GET", "own:a"})));
  EXPECT_FALSE(refused(as("blind", {"META", "SET", "own:a", "m"})));
  EXPECT_TRUE(refused(as("blind", {"META", "SET", "own:a", "m", "IFVERSION", "1"})))
      << "the reply tells of the version";
  EXPECT_FALSE(refused(as("writer", {"META", "SET", "own:a", "m", "IFVERSION", "1"})));
  EXPECT_NE(Do({"COMMAND", "GETKEYSANDFLAGS", "META", "SET", "k", "m", "IFVERSION", "1"}),
            Do({"COMMAND", "GETKEYSANDFLAGS", "META", "SET", "k", "m"}));
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "META", "SET", "k", "m"}), "(k)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "META", "GET", "k"}), "(k)");
  EXPECT_NE(Do({"ACL", "CAT", "read"}).find("meta|get"), std::string::npos);
  EXPECT_NE(Do({"ACL", "CAT", "write"}).find("meta|set"), std::string::npos);
  EXPECT_EQ(Do({"ACL", "CAT", "write"}).find("meta|get"), std::string::npos);
}

TEST_F(MetadataCommandsTest, Resp3AnswersAMapAndNulls) {
  RawConnection raw(server_.port());
  ASSERT_TRUE(raw.Send(Resp({"SET", "k", "v"}) + Resp({"HELLO", "3"}) +
                       Resp({"GET", "k", "WITHMETA"}) + Resp({"META", "GET", "k"}) +
                       Resp({"META", "GET", "missing"}) + Resp({"QUIT"})));
  const std::string answer = raw.ReceiveAll();
  EXPECT_NE(answer.find("*3\r\n$1\r\nv\r\n:"), std::string::npos) << answer;
  EXPECT_NE(answer.find("%5\r\n$7\r\nversion\r\n:"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("$4\r\nmeta\r\n_\r\n_\r\n+OK\r\n")) << answer;
}

}  // namespace
}  // namespace varve
