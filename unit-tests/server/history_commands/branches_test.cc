// Branches of the past: NAMESPACE CLONE ... AT, NAMESPACE UNDROP and DIFF.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ManualClock;
using testing::TestServer;
using Words = std::vector<std::string>;

class BranchesTest : public ::testing::Test {
 protected:
  static EngineOptions Keeping(const ManualClock* clock) {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = clock;
    options.history.time_ms = 86'400'000;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  // Executes the write and returns the version that it made, or a later one.
  std::string Write(const Words& arguments) {
    EXPECT_NE(Do(arguments).front(), '!') << arguments[0];
    EXPECT_EQ(Do({"SET", "mark", "x"}), "OK");
    const std::string mark = Do({"GET", "mark", "WITHVERSION"});
    return mark.substr(3, mark.size() - 4);
  }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
  }

  ManualClock clock_;
  TestServer server_{{}, Keeping(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(BranchesTest, AFlushIsUndone) {
  const std::string version = Write({"MSET", "a", "1", "b", "2"});
  const std::string instant = std::to_string(clock_.WallMillis());
  clock_.Advance(20'000);
  Write({"FLUSHALL"});
  clock_.Advance(20'000);
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "0", "by-version", "AT", version}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "0", "by-time", "AT", "TIME", instant}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "0", "ago", "MAXKEYS", "4", "at", "ago", "30"}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "1");
  for (const std::string name : {"by-version", "by-time", "ago"}) {
    ASSERT_EQ(Do({"NAMESPACE", "USE", name}), "OK");
    EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a 1 b 2 mark x)") << name;
    EXPECT_EQ(Do({"DBSIZE"}), "3");
    EXPECT_EQ(Do({"SET", "a", "branch"}), "OK");
    EXPECT_EQ(Do({"SET", "c", "new"}), "OK");
  }
  EXPECT_TRUE(Do({"SET", "d", "new"}).starts_with("!QUOTA"));
  Restart();
  ASSERT_EQ(Do({"NAMESPACE", "USE", "ago"}), "OK");
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(a branch b 2 c new mark x)");
  EXPECT_EQ(Do({"DIFF", "0", "AT", version, "ago"}), "(a c)");
}

TEST_F(BranchesTest, WhatIsNotKeptIsRefused) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "short", "KEEP", "0"}), "OK");
  const std::string before = Write({"PING"});
  Write({"PING"});
  EXPECT_TRUE(
      Do({"NAMESPACE", "CLONE", "short", "x", "AT", before}).starts_with("!TRIMMED first="));
  EXPECT_TRUE(Do({"NAMESPACE", "CLONE", "0", "x", "AT", "999999"})
                  .starts_with("!ERR version 999999 was not written yet"));
  EXPECT_TRUE(Do({"NAMESPACE", "CLONE", "0", "x", "AT", "AGO", "2d"}).starts_with("!TRIMMED"));
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "none", "x", "AT", before}),
            "!ERR there is no namespace 'none'");
  EXPECT_TRUE(Do({"NAMESPACE", "CLONE", "0", "short", "AT", before}).find("exists already") !=
              std::string::npos);
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "x", "AT"}), "!ERR syntax error");
  EXPECT_EQ(Do({"NAMESPACE", "CLONE", "0", "x", "AT", "-1"}),
            "!ERR AT takes a version, TIME and milliseconds since 1970, or AGO and seconds");
  EXPECT_EQ(Do({"NAMESPACE", "LIST"}), "(short)");
}

TEST_F(BranchesTest, ADroppedNamespaceComesBack) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "app", "MAXKEYS", "10"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "app"}), "OK");
  const std::string first = Write({"SET", "k", "1"});
  Write({"SET", "k", "2"});
  const std::string info = Do({"NAMESPACE", "INFO", "app"});
  ASSERT_EQ(Do({"NAMESPACE", "DROP", "app"}), "OK");
  Restart();
  ASSERT_EQ(Do({"NAMESPACE", "UNDROP", "app"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "UNDROP", "app"}), "!ERR namespace 'app' exists already");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "app"}), "OK");
  EXPECT_EQ(Do({"NAMESPACE", "INFO", "app"}), info);
  EXPECT_EQ(Do({"GET", "k"}), "2");
  EXPECT_EQ(Do({"GET", "k", "AT", first}), "1");
  EXPECT_EQ(Do({"DBSIZE"}), "2");
  Restart();
  ASSERT_EQ(Do({"NAMESPACE", "USE", "app"}), "OK");
  EXPECT_EQ(Do({"GET", "k"}), "2");
  EXPECT_EQ(Do({"NAMESPACE", "UNDROP", "never"}),
            "!ERR no namespace 'never' was dropped that is still kept");
  EXPECT_EQ(Do({"NAMESPACE", "UNDROP", "3"}),
            "!ERR a number names a database, which is there when it is used");
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "short", "KEEP", "0"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "DROP", "short"}), "OK");
  EXPECT_TRUE(Do({"NAMESPACE", "UNDROP", "short"}).starts_with("!TRIMMED first="));
}

TEST_F(BranchesTest, DifferencesAreListedInOrder) {
  const std::string begin = Write({"MSET", "a", "1", "b", "2", "c", "3"});
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "0", "branch"}), "OK");
  const std::string later = Write({"SET", "b", "two"});
  Do({"DEL", "c"});
  Do({"SET", "d", "4"});
  Do({"SET", "a", "1", "PX", "50000"});
  EXPECT_EQ(Do({"DIFF", "0", "branch"}), "(a b c d)");
  EXPECT_EQ(Do({"DIFF", "branch", "0", "RANGE", "[b", "(d"}), "(b c)");
  EXPECT_EQ(Do({"DIFF", "branch", "0", "LIMIT", "2", "RANGE", "(a", "+"}), "(b c)");
  EXPECT_EQ(Do({"DIFF", "branch", "0", "LIMIT", "0"}), "()");
  EXPECT_EQ(Do({"DIFF", "0", "AT", later, "0"}), "(a c d)");
  EXPECT_EQ(Do({"DIFF", "0", "AT", begin, "branch"}), "()");
  EXPECT_EQ(Do({"DIFF", "0", "AT", begin, "0", "AT", later}), "(b)");
  EXPECT_EQ(Do({"DIFF", "0", "0"}), "()");
  EXPECT_EQ(Do({"DIFF", "0", "5", "RANGE", "-", "[b"}), "(a b)") << "a database that is new";
  const std::string plain = Write({"SET", "m", "1"});
  ASSERT_EQ(Do({"SET", "m", "1", "META", "x"}), "OK");
  EXPECT_EQ(Do({"DIFF", "0", "AT", plain, "0"}), "(m)") << "the metadata alone";
  const std::string with_x = Write({"SET", "n", "1"});
  ASSERT_EQ(Do({"SET", "m", "1", "META", "y"}), "OK");
  EXPECT_EQ(Do({"DIFF", "0", "AT", with_x, "0"}), "(m)");
  ASSERT_EQ(Do({"SET", "m", "1", "META", "x"}), "OK");
  EXPECT_EQ(Do({"DIFF", "0", "AT", with_x, "0"}), "()");
  clock_.Advance(60'000);
  EXPECT_EQ(Do({"DIFF", "0", "AT", "AGO", "30", "0"}), "(a)") << "it has expired between";
}

TEST_F(BranchesTest, WhatMakesNoSenseIsAnError) {
  EXPECT_EQ(Do({"DIFF", "0"}), "!ERR wrong number of arguments for 'diff' command");
  EXPECT_EQ(Do({"DIFF", "0", "AT", "1"}), "!ERR wrong number of arguments for 'diff' command");
  EXPECT_EQ(Do({"DIFF", "0", "none"}), "!ERR there is no namespace 'none'");
  EXPECT_EQ(Do({"DIFF", "99", "0"}), "!ERR DB index is out of range");
  EXPECT_EQ(Do({"DIFF", "0", "0", "RANGE", "a", "b"}),
            "!ERR min or max not valid string range item");
  EXPECT_EQ(Do({"DIFF", "0", "0", "LIMIT", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(Do({"DIFF", "0", "0", "LIMIT"}), "!ERR syntax error");
  EXPECT_EQ(Do({"DIFF", "0", "AT", "x", "0"}),
            "!ERR AT takes a version, TIME and milliseconds since 1970, or AGO and seconds");
  EXPECT_TRUE(Do({"DIFF", "0", "AT", "999999", "0"}).starts_with("!ERR version 999999"));
  EXPECT_EQ(Do({"AT", "0", "DIFF", "0", "0"}),
            "!ERR DIFF takes AT behind each of the two that it compares");
}

TEST_F(BranchesTest, ALongReplyIsWholeAndBounded) {
  constexpr int kKeys = 30'000;  // more than is collected at once
  for (int i = 0; i < kKeys; i += 100) {
    Words put = {"MSET"};
    for (int j = i; j < i + 100; ++j) {
      put.push_back("key" + std::string(12, 'k') + std::to_string(100'000 + j));
      put.emplace_back("v");
    }
    ASSERT_EQ(Do(put), "OK");
  }
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "empty"}), "OK");
  const std::string keys = Do({"RANGE", "-", "+", "KEYS"});
  EXPECT_EQ(Do({"DIFF", "0", "empty"}), keys);
  EXPECT_EQ(Do({"DIFF", "empty", "0", "LIMIT", "25000"}),
            Do({"RANGE", "-", "+", "KEYS", "LIMIT", "0", "25000"}));
}

TEST_F(BranchesTest, RightsHoldInBothPlaces) {
  Do({"MSET", "a:1", "1", "b:1", "2", "c:1", "3"});
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "app"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "other"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "part", "on", ">pw", "+@all", "%R~a:*", "%R~c:*", "resetdbs",
                "db=0", "ns=app"}),
            "OK")
      << "a user of two places";
  const std::unique_ptr<Client> part = server_.Connect();
  ASSERT_EQ(Ask(*part, {"AUTH", "part", "pw"}), "OK");
  EXPECT_EQ(Ask(*part, {"DIFF", "0", "app"}), "(a:1 c:1)");
  EXPECT_TRUE(Ask(*part, {"DIFF", "0", "other"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*part, {"DIFF", "other", "AT", "AGO", "1", "0"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*part, {"DIFF", "0", "AT", "AGO", "0", "other"}).starts_with("!NOPERM"));
  EXPECT_TRUE(
      Ask(*part, {"NAMESPACE", "CLONE", "0", "x", "AT", "AGO", "0"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Ask(*part, {"NAMESPACE", "UNDROP", "app"}).starts_with("!NOPERM"));
  EXPECT_EQ(Do({"ACL", "SETUSER", "part", "-diff"}), "OK");
  EXPECT_TRUE(Ask(*part, {"DIFF", "0", "app"}).starts_with("!NOPERM"));
  const std::string reads = Do({"ACL", "CAT", "read"});
  EXPECT_NE(reads.find("diff"), std::string::npos);
  EXPECT_NE(Do({"ACL", "CAT", "keyspace"}).find("diff"), std::string::npos);
}

}  // namespace
}  // namespace varve
