// Reads as of a version or a time: AT in front of a command, and at the end of one.
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
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

constexpr uint64_t kDay = 86'400'000;

class AtTest : public ::testing::Test {
 protected:
  static EngineOptions Keeping(const ManualClock* clock) {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = clock;
    options.history.time_ms = kDay;
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
  // Answers of the request with AT in front of it and behind it, which have to be the same.
  std::string Both(Words request, const Words& point) {
    Words before = {"AT"};
    before.insert(before.end(), point.begin(), point.end());
    before.insert(before.end(), request.begin(), request.end());
    request.push_back("at");
    request.insert(request.end(), point.begin(), point.end());
    const std::string answer = Do(before);
    EXPECT_EQ(Do(request), answer) << request[0];
    return answer;
  }

  ManualClock clock_;
  TestServer server_{{}, Keeping(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(AtTest, EveryReadSeesWhatWasThere) {
  const std::string empty = Write({"PING"});
  const std::string first = Write({"MSET", "a", "1", "b", "22"});
  const std::string second = Write({"SET", "a", "two"});
  const std::string third = Write({"DEL", "a"});
  Write({"FLUSHDB"});
  for (const bool restarted : {false, true}) {
    if (restarted) {
      client_.reset();
      server_.Restart();
      client_ = server_.Connect();
    }
    EXPECT_EQ(Both({"GET", "a"}, {empty}), "nil");
    EXPECT_EQ(Both({"GET", "a"}, {first}), "1");
    EXPECT_EQ(Both({"GET", "a"}, {second}), "two");
    EXPECT_EQ(Both({"GET", "a"}, {third}), "nil");
    EXPECT_EQ(Both({"STRLEN", "a"}, {second}), "3");
    EXPECT_EQ(Both({"RANGE", "[a", "[b"}, {second}), "(a two b 22)");
    EXPECT_EQ(Both({"RANGE", "[b", "[a", "REV", "LIMIT", "0", "1"}, {third}), "(b 22)");
    EXPECT_EQ(Both({"PREFIX", "a"}, {first}), "(a 1)");
    EXPECT_EQ(Both({"COUNT", "-", "+"}, {second}), "3");
    EXPECT_EQ(Both({"KEYS", "?"}, {second}), "(a b)");
    EXPECT_EQ(Both({"CHILDREN", ""}, {second}), "(a b mark)");
    EXPECT_EQ(Both({"SCAN", "0"}, {third}), "(0 (b mark))");
    EXPECT_EQ(Do({"AT", first, "MGET", "a", "b", "c"}), "(1 22 nil)");
    EXPECT_EQ(Do({"AT", second, "EXISTS", "a", "b"}), "2");
    EXPECT_EQ(Do({"AT", first, "GETRANGE", "b", "0", "0"}), "2");
    EXPECT_EQ(Do({"AT", second, "DBSIZE"}), "3");
    EXPECT_EQ(Do({"DBSIZE"}), "1");
  }
}

TEST_F(AtTest, TimesAndExpiriesAreThoseOfTheInstantThatIsRead) {
  const uint64_t begin = clock_.WallMillis();
  Write({"SET", "k", "old", "PX", "5000"});
  clock_.Advance(3'000);
  Write({"SET", "other", "1"});
  clock_.Advance(7'000);
  Write({"SET", "k", "new"});
  EXPECT_EQ(Both({"GET", "k"}, {"TIME", std::to_string(begin)}), "old");
  EXPECT_EQ(Both({"GET", "k"}, {"TIME", std::to_string(begin + 4'999)}), "old");
  EXPECT_EQ(Both({"GET", "k"}, {"TIME", std::to_string(begin + 5'000)}), "nil");
  EXPECT_EQ(Both({"GET", "k"}, {"TIME", std::to_string(begin + 10'000)}), "new");
  EXPECT_EQ(Both({"GET", "k"}, {"AGO", "0"}), "new");
  EXPECT_EQ(Both({"GET", "k"}, {"AGO", "8"}), "old");
  EXPECT_EQ(Both({"GET", "k"}, {"ago", "8s"}), "old");
  EXPECT_EQ(Do({"AT", "TIME", std::to_string(begin + 1'000), "PTTL", "k"}), "4000");
  EXPECT_EQ(Both({"GET", "k"}, {"TIME", std::to_string(begin + 60'000)}),
            "!ERR this time has not come yet");
  EXPECT_TRUE(Both({"GET", "k"}, {"AGO", "1d"}).starts_with("!TRIMMED first="));
}

TEST_F(AtTest, WhatIsNotKeptIsRefused) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "short", "KEEP", "0"}), "OK");
  const std::string before = Write({"PING"});
  ASSERT_EQ(Do({"NAMESPACE", "USE", "short"}), "OK");
  const std::string first = Write({"SET", "k", "1"});
  const std::string second = Write({"SET", "k", "2"});
  EXPECT_EQ(Both({"GET", "k"}, {first}), "!TRIMMED first=" + second);
  EXPECT_EQ(Both({"RANGE", "-", "+"}, {before}), "!TRIMMED first=" + second);
  EXPECT_EQ(Both({"GET", "k"}, {second}), "2");
  EXPECT_TRUE(
      Both({"GET", "k"}, {"999999"}).starts_with("!ERR version 999999 was not written yet"));
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "short", "KEEP", "1h", "KEEPBYTES", "1MiB"}), "OK");
  const std::string kept = Write({"SET", "k", "3"});
  Write({"SET", "k", "4"});
  EXPECT_EQ(Both({"GET", "k"}, {kept}), "3");
  EXPECT_NE(Do({"NAMESPACE", "INFO", "short"}).find("keep 1h keep_bytes 1048576 compress "),
            std::string::npos);
}

TEST_F(AtTest, ALongRangeOfThePastIsWholeWhileOthersWrite) {
  constexpr int kKeys = 20'000;
  for (int i = 0; i < kKeys; i += 100) {
    Words mset = {"MSET"};
    for (int k = i; k < i + 100; ++k) {
      mset.push_back("key" + std::to_string(100'000 + k));
      mset.push_back("old");
    }
    ASSERT_EQ(Do(mset), "OK");
  }
  const std::string version = Write({"PING"});
  ASSERT_EQ(Do({"DELRANGE", "[key", "[l"}), "OK");
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"COUNT", "[key", "[l"}), "0");
  EXPECT_EQ(Both({"COUNT", "[key", "[l"}, {version}), std::to_string(kKeys));
  const std::string all = Do({"AT", version, "RANGE", "[key", "[l", "KEYS"});
  EXPECT_EQ(all.size(), static_cast<size_t>(kKeys) * 10 + 1);
}

TEST_F(AtTest, OnlyReadsAreTaken) {
  for (const Words& request : std::vector<Words>{{"SET", "k", "1"},
                                                 {"GETDEL", "k"},
                                                 {"GETEX", "k"},
                                                 {"FLUSHDB"},
                                                 {"MULTI"},
                                                 {"WATCH", "k"},
                                                 {"CONFIG", "GET", "*"},
                                                 {"SELECT", "1"},
                                                 {"SUBSCRIBE", "c"},
                                                 {"AT", "1", "GET", "k"},
                                                 {"PING"}}) {
    Words at = {"AT", "1"};
    at.insert(at.end(), request.begin(), request.end());
    const std::string answer = Do(at);
    EXPECT_TRUE(answer.starts_with("!ERR AT takes a command that reads")) << answer;
  }
  EXPECT_EQ(Do({"GET", "k"}), "nil");
  EXPECT_EQ(Do({"AT", "1", "GET"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"AT", "TIME", "1"}), "!ERR wrong number of arguments for 'at' command");
  EXPECT_TRUE(Do({"AT", "1", "NOSUCH"}).starts_with("!ERR unknown command"));
  const std::string bad =
      "!ERR AT takes a version, TIME and milliseconds since 1970, or AGO and seconds";
  EXPECT_EQ(Do({"AT", "yesterday", "GET", "k"}), bad);
  EXPECT_EQ(Do({"AT", "-1", "GET", "k"}), bad);
  EXPECT_EQ(Do({"GET", "k", "AT", "-1"}), bad);
  for (const Words& request :
       std::vector<Words>{{"GET", "k", "AT", "yesterday"},
                          {"GET", "k", "at"},
                          {"GET", "k", "WITHVERSION", "AT", "x"},
                          {"GET", "k", "AT", "TIME"},
                          {"STRLEN", "k", "AT", "x"},
                          {"KEYS", "*", "AT", "x"},
                          {"COUNT", "-", "+", "AT", "x"},
                          {"ACL", "DRYRUN", "default", "GET", "k", "AT", "x"},
                          {"AT", "1", "GET", "k", "AT", "x"}})
    EXPECT_EQ(Do(request), bad) << request[0];
  EXPECT_EQ(Do({"GET", "AT", "x"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"DBSIZE", "AT", "x"}), "!ERR wrong number of arguments for 'dbsize' command");
  EXPECT_EQ(Do({"GET", "k", "AT", "1", "AT", "2"}),
            "!ERR wrong number of arguments for 'get' command");
  EXPECT_TRUE(Do({"AT", "1", "MEMORY", "STATS"}).starts_with("!ERR AT takes a command that reads"));
  EXPECT_EQ(Do({"GET", "k", "AT", "TIME", "soon"}), bad);
  EXPECT_EQ(Do({"GET", "AT", "1"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"MGET", "a", "AT", "1"}), "(nil nil nil)") << "these are keys";
}

TEST_F(AtTest, AnOptionMayHaveTheValueAt) {
  Write({"MSET", "p/as", "1", "p/at", "2", "p/au", "3"});
  EXPECT_EQ(Do({"CHILDREN", "p/", "AFTER", "at", "REV"}), "(as)");
  EXPECT_EQ(Do({"CHILDREN", "p/", "DELIM", "at", "WITHCOUNTS"}), "(as 1 at 1 au 1)");
  EXPECT_EQ(Do({"SCAN", "0", "MATCH", "at"}), "(0 ())");
}

TEST_F(AtTest, SizesBelowADirectoryAreThoseOfThePast) {
  const std::string version = Write({"MSET", "d/1", "12345", "d/2", "1"});
  Write({"DEL", "d/2"});
  EXPECT_EQ(Both({"CHILDREN", "", "WITHSIZES"}, {version}), "(d/ 12 mark 5)");
}

TEST_F(AtTest, ManyWordsThatLookLikePointsAreAnError) {
  Words request = {"GET", "k"};
  for (int i = 0; i < 100'000; ++i) request.insert(request.end(), {"AT", "1"});
  EXPECT_EQ(Do(request), "!ERR wrong number of arguments for 'get' command");
}

TEST_F(AtTest, InsideATransactionAndAPipeline) {
  const std::string version = Write({"SET", "k", "old"});
  RawConnection raw(server_.port());
  ASSERT_TRUE(raw.Send(Resp({"SET", "k", "new"}) + Resp({"GET", "k"}) +
                       Resp({"GET", "k", "AT", version}) + Resp({"GET", "k"}) + Resp({"MULTI"}) +
                       Resp({"SET", "k", "newer"}) + Resp({"AT", version, "GET", "k"}) +
                       Resp({"RANGE", "[k", "[k", "AT", version}) + Resp({"GET", "k"}) +
                       Resp({"EXEC"})));
  raw.FinishSending();
  EXPECT_EQ(raw.ReceiveAll(),
            "+OK\r\n$3\r\nnew\r\n$3\r\nold\r\n$3\r\nnew\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n"
            "+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n$3\r\nold\r\n*2\r\n$1\r\nk\r\n$3\r\nold\r\n"
            "$5\r\nnewer\r\n");
}

TEST_F(AtTest, ThePastShowsAUserNoMoreThanThePresent) {
  const std::string version = Write({"MSET", "app:1", "x", "secret", "y"});
  Write({"DEL", "app:1", "secret"});
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@read", "-strlen", "~app:*"}), "OK");
  ASSERT_EQ(Do({"AUTH", "alice", "any"}), "OK");
  const std::string denied =
      "!NOPERM this user has no permissions to access one of the keys used as arguments";
  EXPECT_EQ(Both({"GET", "app:1"}, {version}), "x");
  EXPECT_EQ(Both({"GET", "secret"}, {version}), denied);
  EXPECT_EQ(Do({"AT", version, "MGET", "app:1", "secret"}), denied);
  EXPECT_EQ(Both({"RANGE", "-", "+"}, {version}), "(app:1 x)");
  EXPECT_EQ(Both({"COUNT", "-", "+"}, {version}), "1");
  EXPECT_EQ(Both({"KEYS", "*"}, {version}), "(app:1)");
  EXPECT_EQ(Both({"SCAN", "0"}, {version}), "(0 (app:1))");
  EXPECT_EQ(Both({"STRLEN", "app:1"}, {version}),
            "!NOPERM this user has no permissions to run the 'strlen' command");
}

// ACL DRYRUN says of each request behind AT whether its execution is denied, and by what.
TEST_F(AtTest, DryRunChecksAtAndWhatStandsBehindIt) {
  const std::string version = Write({"MSET", "app:1", "x", "secret", "y"});
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+at", "+get", "+mget", "+count",
                "+memory|usage", "+acl|whoami", "~app:*"}),
            "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "bob", "on", "nopass", "+get", "~*"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "carol", "on", "nopass", "+at", "+get", "~*", "db=1"}), "OK");
  const auto dry_run = [&](const std::string& user, const Words& request) {
    Words words = {"ACL", "DRYRUN", user, "AT", version};
    words.insert(words.end(), request.begin(), request.end());
    return Do(words);
  };
  const std::string begin = "This user has no permissions to ";
  const std::string key = begin + "access the 'secret' key";
  EXPECT_EQ(dry_run("alice", {"GET", "app:1"}), "OK");
  EXPECT_EQ(dry_run("alice", {"GET", "secret"}), key);
  EXPECT_EQ(dry_run("alice", {"MGET", "app:1", "secret"}), key);
  EXPECT_EQ(dry_run("alice", {"MEMORY", "USAGE", "secret"}), key);
  EXPECT_EQ(dry_run("alice", {"STRLEN", "app:1"}), begin + "run the 'strlen' command");
  EXPECT_EQ(dry_run("alice", {"DBSIZE"}), begin + "run the 'dbsize' command");
  EXPECT_EQ(dry_run("bob", {"GET", "app:1"}), begin + "run the 'at' command");
  EXPECT_EQ(dry_run("bob", {"NOSUCH"}), begin + "run the 'at' command");
  EXPECT_EQ(dry_run("carol", {"GET", "app:1"}), begin + "access the database '0'");
  EXPECT_EQ(dry_run("default", {"GET", "secret"}), "OK");
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "AT", "TIME", "1", "GET", "secret"}), key);
  EXPECT_EQ(Do({"ACL", "DRYRUN", "alice", "at", "ago", "1d", "get", "app:1"}), "OK");
  EXPECT_EQ(Do({"ACL", "LOG"}), "()") << "nothing was executed";
}

// What is wrong with a request behind AT is told in the same words by all that take it apart.
TEST_F(AtTest, AWrongRequestGetsTheErrorOfItsExecution) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@all", "~app:*"}), "OK");
  for (const Words& request : std::vector<Words>{{"AT", "1", "NOSUCH", "k"},
                                                 {"AT", "1", "hget", "k", "f"},
                                                 {"AT", "1", "memory|usage", "k"},
                                                 {"AT", "1", std::string(1000, 'x'), "k"},
                                                 {"AT", "1", "GET"},
                                                 {"AT", "1", "MEMORY", "USAGE"},
                                                 {"AT", "1", "MEMORY", "NOSUCH"},
                                                 {"AT", "1", "SET", "k", "v"},
                                                 {"AT", "1", "AT", "1", "GET", "k"},
                                                 {"AT", "TIME", "1"},
                                                 {"AT", "yesterday", "GET", "k"}}) {
    const std::string executed = Do(request);
    EXPECT_TRUE(executed.starts_with("!ERR ")) << executed;
    const auto behind = [&](Words words) {
      words.insert(words.end(), request.begin(), request.end());
      return Do(words);
    };
    EXPECT_EQ(behind({"ACL", "DRYRUN", "default"}), executed);
    EXPECT_EQ(behind({"ACL", "DRYRUN", "alice"}), executed);
    EXPECT_EQ(behind({"COMMAND", "GETKEYS"}), executed);
    EXPECT_EQ(behind({"COMMAND", "GETKEYSANDFLAGS"}), executed);
  }
}

TEST_F(AtTest, TheKeysAreThoseOfTheRequestBehindIt) {
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "AT", "1", "GET", "k"}), "(k)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "at", "time", "1", "mget", "a", "b"}), "(a b)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "AT", "AGO", "1d", "MEMORY", "USAGE", "k"}), "(k)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYSANDFLAGS", "AT", "1", "EXISTS", "a", "b"}),
            Do({"COMMAND", "GETKEYSANDFLAGS", "EXISTS", "a", "b"}));
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "AT", "1", "DBSIZE"}),
            "!ERR The command has no key arguments");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "AT", "1"}),
            "!ERR Invalid number of arguments specified for command");
}

}  // namespace
}  // namespace varve
