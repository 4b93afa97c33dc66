// HISTORY, UNDELETE and the state that EXPLAIN GET tells, through the port.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/server/caching_client.h"
#include "unit-tests/server/event_log.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/rounds.h"

namespace varve {
namespace {

using testing::Ask;
using testing::CachingClient;
using testing::EventLog;
using testing::ManualClock;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;
using Words = std::vector<std::string>;

constexpr uint64_t kUndoPeriodMs = 86'400'000;
constexpr std::string_view kNoKeyRights =
    "!NOPERM this user has no permissions to access one of the keys used as arguments";

class UndoTest : public ::testing::Test {
 protected:
  static EngineOptions Keeping(const ManualClock* clock) {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = clock;
    options.history.time_ms = kUndoPeriodMs;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  // Executes a write of one operation and returns its version.
  uint64_t Write(const Words& arguments) {
    EXPECT_NE(Do(arguments).front(), '!') << arguments[0];
    EXPECT_EQ(Do({"SET", "mark", "x"}), "OK");
    const std::string mark = Do({"GET", "mark", "WITHVERSION"});
    return std::stoull(mark.substr(3)) - 1;
  }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
  }
  std::string StateOf(const std::string& key, const Words& point = {}) {
    Words request = {"EXPLAIN", "GET", key};
    request.insert(request.end(), point.begin(), point.end());
    const std::string explained = Do(request);
    const size_t begin = explained.find(" state ") + 7;
    return explained.substr(begin, explained.find(' ', begin) - begin);
  }

  ManualClock clock_;
  TestServer server_{{}, Keeping(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(UndoTest, HistoryListsWhatWasDone) {
  const uint64_t begin = clock_.WallMillis();
  const uint64_t expiry = begin + 60'000;
  const uint64_t set = Write({"SET", "k", "one"});
  clock_.Advance(1'000);
  const uint64_t again = Write({"SET", "k", "other", "PXAT", std::to_string(expiry)});
  clock_.Advance(1'000);
  const uint64_t deleted = Write({"DEL", "k"});
  const uint64_t third = Write({"SET", "k", ""});
  const uint64_t range = Write({"DELRANGE", "[a", "(l"});
  const uint64_t fourth = Write({"SET", "k", "4"});
  const uint64_t flushed = Write({"FLUSHDB"});
  const uint64_t fifth = Write({"SET", "k", "55"});
  const uint64_t now = clock_.WallMillis();
  const std::string all = fmt::format(
      "(({} {} set 2 0) ({} {} flush 0 0) ({} {} set 1 0) ({} {} delrange 0 0) ({} {} set 0 0) "
      "({} {} del 0 0) ({} {} set 5 {}) ({} {} set 3 0))",
      fifth, now, flushed, now, fourth, now, range, now, third, now, deleted, now, again,
      begin + 1'000, expiry, set, begin);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Do({"HISTORY", "k"}), all);
    EXPECT_EQ(Do({"history", "k", "count", "2"}),
              fmt::format("(({} {} set 2 0) ({} {} flush 0 0))", fifth, now, flushed, now));
    EXPECT_EQ(Do({"AT", std::to_string(again), "HISTORY", "k", "COUNT", "1"}),
              fmt::format("(({} {} set 5 {}))", again, begin + 1'000, expiry));
    EXPECT_EQ(Do({"HISTORY", "never"}), "()");
    if (i == 0) ASSERT_EQ(Do({"COMPACT"}), "OK");
    if (i == 1) Restart();
  }
}

TEST_F(UndoTest, AKeyThatExpiredAndOneWhoseExpiryChanged) {
  const uint64_t begin = clock_.WallMillis();
  const uint64_t set = Write({"SET", "k", "one"});
  ASSERT_EQ(Do({"PEXPIREAT", "k", std::to_string(begin + 5'000)}), "1");
  clock_.Advance(10'000);
  EXPECT_EQ(Do({"GET", "k"}), "nil");
  const std::string history = Do({"HISTORY", "k"});
  EXPECT_NE(history.find(fmt::format(" {} expired 0 0)", begin + 5'000)), std::string::npos)
      << history;
  EXPECT_TRUE(history.ends_with(fmt::format(" ({} {} set 3 0))", set, begin))) << history;
  EXPECT_EQ(StateOf("k"), "expired");
  EXPECT_EQ(Do({"UNDELETE", "k"}), "0") << "the old expiry instant counts";
}

TEST_F(UndoTest, HistoryRefusesWrongArguments) {
  EXPECT_EQ(Do({"HISTORY"}), "!ERR wrong number of arguments for 'history' command");
  for (const Words& rest : std::vector<Words>{{"COUNT"}, {"LIMIT", "1"}, {"COUNT", "1", "2"}}) {
    Words request = {"HISTORY", "k"};
    request.insert(request.end(), rest.begin(), rest.end());
    EXPECT_EQ(Do(request), "!ERR syntax error");
  }
  for (const char* count : {"0", "-1", "x", "1048577", "99999999999999999999"})
    EXPECT_EQ(Do({"HISTORY", "k", "COUNT", count}), "!ERR COUNT is between 1 and 1048576");
}

TEST_F(UndoTest, ADeletedKeyComesBack) {
  const uint64_t expiry = clock_.WallMillis() + 60'000;
  Write({"SET", "k", "old"});
  const uint64_t second = Write({"SET", "k", "value", "PXAT", std::to_string(expiry)});
  EXPECT_EQ(Do({"UNDELETE", "k"}), "0") << "it is there";
  Write({"DEL", "k"});
  EXPECT_EQ(Do({"UNDELETE", "never"}), "0");
  EXPECT_EQ(Do({"UNDELETE", "k"}), "1");
  EXPECT_EQ(Do({"GET", "k"}), "value");
  EXPECT_EQ(Do({"PEXPIRETIME", "k"}), std::to_string(expiry));
  Restart();
  EXPECT_EQ(Do({"GET", "k"}), "value");
  Write({"FLUSHDB"});
  EXPECT_EQ(Do({"UNDELETE", "k", "AT", std::to_string(second - 1)}), "1");
  EXPECT_EQ(Do({"GET", "k"}), "old");
  EXPECT_EQ(Do({"PTTL", "k"}), "-1");
  EXPECT_EQ(Do({"UNDELETE", "k", "AT", std::to_string(second)}), "0") << "it is there";
  Write({"DEL", "k"});
  clock_.Advance(61'000);
  EXPECT_EQ(Do({"UNDELETE", "k", "AT", std::to_string(second)}), "0") << "its time is over now";
  EXPECT_EQ(Do({"UNDELETE", "k"}), "1") << "the newest value does not expire";
}

TEST_F(UndoTest, APrefixAndARangeComeBack) {
  Write({"MSET", "a:1", "1", "a:2", "2", "a:3", "3", "b:1", "4", "", "empty"});
  const uint64_t full = Write({"SET", "c", "5"});
  Write({"SET", "a:2", "two"});
  Write({"DEL", "a:1"});
  Write({"DELRANGE", "-", "+"});
  Write({"SET", "a:3", "other"});
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "a:"}), "2") << "what is there now stays";
  EXPECT_EQ(Do({"RANGE", "[a", "[z"}), "(a:1 1 a:2 two a:3 other mark x)");
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "a:"}), "0");
  Write({"FLUSHDB"});
  EXPECT_EQ(Do({"UNDELETE", "RANGE", "[a", "(c", "AT", std::to_string(full)}), "4");
  EXPECT_EQ(Do({"RANGE", "[a", "[l"}), "(a:1 1 a:2 2 a:3 3 b:1 4)");
  EXPECT_EQ(Do({"UNDELETE", "range", "-", "+"}), "2");
  EXPECT_EQ(Do({"MGET", "", "c"}), "(empty 5)");
  EXPECT_EQ(Do({"UNDELETE", "RANGE", "[c", "[a"}), "0");
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  Restart();
  EXPECT_EQ(Do({"RANGE", "[a", "[l"}), "(a:1 1 a:2 2 a:3 3 b:1 4 c 5)");
}

TEST_F(UndoTest, AKeyMayHaveTheNameOfAWord) {
  Write({"MSET", "PREFIX", "1", "range", "2"});
  const uint64_t there = Write({"SET", "other", "x"});
  Write({"FLUSHDB"});
  EXPECT_EQ(Do({"UNDELETE", "PREFIX"}), "1");
  EXPECT_EQ(Do({"UNDELETE", "range", "AT", std::to_string(there)}), "1");
  EXPECT_EQ(Do({"MGET", "PREFIX", "range", "other"}), "(1 2 nil)");
  for (const Words& rest : std::vector<Words>{{"a", "b"},
                                              {"RANGE", "a"},
                                              {"RANGE", "a", "b"},
                                              {"RANGE", "-", "+", "LIMIT", "1"},
                                              {"PREFIX", "a", "b"}}) {
    Words request = {"UNDELETE"};
    request.insert(request.end(), rest.begin(), rest.end());
    EXPECT_EQ(Do(request), "!ERR syntax error");
  }
  EXPECT_TRUE(Do({"UNDELETE", "k", "AT", "soon"}).starts_with("!ERR"));
  EXPECT_TRUE(Do({"UNDELETE", "k", "AT", "TIME", "soon"}).starts_with("!ERR AT takes a version"));
  EXPECT_TRUE(Do({"UNDELETE", "k", "AT", "999999"}).starts_with("!ERR version 999999"));
}

TEST_F(UndoTest, TheKeyOfUndeleteIsTold) {
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "UNDELETE", "a"}), "(a)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "UNDELETE", "a", "AT", "AGO", "10"}), "(a)");
  EXPECT_EQ(Do({"COMMAND", "GETKEYSANDFLAGS", "UNDELETE", "prefix"}), "((prefix (RW insert)))");
  const std::string none = "!ERR The command has no key arguments";
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "UNDELETE", "PREFIX", "p"}), none);
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "UNDELETE", "RANGE", "-", "+", "AT", "1"}), none);
  EXPECT_EQ(Do({"COMMAND", "GETKEYS", "UNDELETE", "a", "b"}),
            "!ERR Invalid number of arguments specified for command");
}

TEST_F(UndoTest, BelowTheHorizonItIsRefused) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "short", "KEEP", "0"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "short"}), "OK");
  const uint64_t first = Write({"SET", "k", "1"});
  Write({"DEL", "k"});
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_TRUE(Do({"UNDELETE", "k", "AT", std::to_string(first)}).starts_with("!TRIMMED first="));
  EXPECT_EQ(Do({"UNDELETE", "k"}), "0");
  EXPECT_TRUE(Do({"HISTORY", "k"}).ends_with(" below_horizon 0 0))")) << Do({"HISTORY", "k"});
  EXPECT_EQ(StateOf("k"), "below_horizon");
}

TEST_F(UndoTest, ExplainTellsWhatBecameOfAKey) {
  const uint64_t put = Write({"SET", "deleted", "1"});
  Write({"DEL", "deleted"});
  Write({"SET", "expired", "1", "PX", "1000"});
  Write({"SET", "flushed", "1"});
  Write({"FLUSHDB"});
  clock_.Advance(2'000);
  Write({"SET", "found", "1"});
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    EXPECT_EQ(StateOf("deleted"), "deleted");
    EXPECT_EQ(StateOf("flushed"), "deleted");
    EXPECT_EQ(StateOf("found"), "found");
    EXPECT_EQ(StateOf("never"), "never_there");
    EXPECT_EQ(StateOf("deleted", {"AT", std::to_string(put)}), "found");
    EXPECT_EQ(StateOf("found", {"AT", std::to_string(put)}), "never_there");
  }
}

TEST_F(UndoTest, InsideATransaction) {
  Write({"MSET", "k", "value", "other", "2", "third", "3"});
  Write({"DEL", "other", "third"});
  for (const Words& request : std::vector<Words>{{"MULTI"},
                                                 {"DEL", "k"},
                                                 {"UNDELETE", "k"},
                                                 {"SET", "third", "new"},
                                                 {"UNDELETE", "RANGE", "-", "+"},
                                                 {"HISTORY", "k", "COUNT", "1"}})
    EXPECT_NE(Do(request).front(), '!');
  EXPECT_TRUE(Do({"EXEC"}).starts_with("(1 1 OK 1 (("));
  EXPECT_EQ(Do({"MGET", "k", "other", "third"}), "(value 2 new)");
}

TEST_F(UndoTest, OthersHearOfIt) {
  Write({"MSET", "a", "1", "b", "2"});
  Write({"DEL", "a", "b"});
  ASSERT_EQ(Do({"CONFIG", "SET", "notify-keyspace-events", "KEA"}), "OK");
  CachingClient caching(server_.port());
  ASSERT_EQ(caching.Do({"CLIENT", "TRACKING", "ON"}), "OK");
  EXPECT_EQ(caching.Do({"GET", "b"}), "nil");
  EventLog events(server_.port());
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", ""}), "2");
  EXPECT_EQ(events.Take(*client_), (Words{"__keyspace@0__:a set", "__keyevent@0__:set a",
                                          "__keyspace@0__:b set", "__keyevent@0__:set b"}));
  EXPECT_EQ(caching.Take(), (CachingClient::Pushes{"(invalidate (b))"}));
}

TEST_F(UndoTest, AUserMayUndoInItsPartAlone) {
  Write({"MSET", "app:1", "x", "app:2", "y", "secret", "z"});
  Write({"DEL", "app:1", "app:2", "secret"});
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@all", "~app:*"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "reader", "on", "nopass", "+@read", "%R~app:*"}), "OK");
  ASSERT_EQ(Do({"AUTH", "alice", "any"}), "OK");
  EXPECT_EQ(Do({"HISTORY", "secret"}), kNoKeyRights);
  EXPECT_TRUE(Do({"HISTORY", "app:1"}).find(" del 0 0)") != std::string::npos);
  EXPECT_EQ(Do({"UNDELETE", "secret"}), kNoKeyRights);
  EXPECT_TRUE(Do({"UNDELETE", "RANGE", "-", "+"}).starts_with("!NOPERM"));
  EXPECT_TRUE(Do({"UNDELETE", "PREFIX", "ap"}).starts_with("!NOPERM"));
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "app:1"}), "1");
  EXPECT_EQ(Do({"UNDELETE", "app:2"}), "1");
  ASSERT_EQ(Do({"AUTH", "reader", "any"}), "OK");
  EXPECT_NE(Do({"HISTORY", "app:1"}).front(), '!');
  EXPECT_TRUE(Do({"UNDELETE", "app:1"}).starts_with("!NOPERM"));
  ASSERT_EQ(Do({"AUTH", "default", ""}), "OK");
  const std::string history = Do({"COMMAND", "INFO", "HISTORY", "UNDELETE"});
  EXPECT_NE(history.find("(@keyspace @read @slow)"), std::string::npos) << history;
  EXPECT_NE(history.find("(@keyspace @write @slow)"), std::string::npos) << history;
}

TEST_F(UndoTest, AQuotaHolds) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "small", "MAXKEYS", "2"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "small"}), "OK");
  EXPECT_EQ(Do({"MSET", "a", "1", "b", "2"}), "OK");
  EXPECT_EQ(Do({"DEL", "a", "b"}), "2");
  EXPECT_EQ(Do({"SET", "c", "3"}), "OK");
  EXPECT_TRUE(Do({"UNDELETE", "RANGE", "-", "+"}).starts_with("!QUOTA"));
  EXPECT_EQ(Do({"UNDELETE", "a"}), "1");
}

TEST_F(UndoTest, WhatOthersWriteMeanwhileStays) {
  constexpr int kKeys = 200;
  for (int round = 0; round < testing::Rounds(20); ++round) {
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(Do({"SET", fmt::format("k{}", i), "old"}), "OK");
    ASSERT_EQ(Do({"DELRANGE", "[k", "(l"}), "OK");
    std::thread writer([&] {
      const std::unique_ptr<Client> other = server_.Connect();
      for (int i = 0; i < kKeys; i += 2)
        EXPECT_EQ(Ask(*other, {"SET", fmt::format("k{}", i), "new"}), "OK");
    });
    EXPECT_NE(Do({"UNDELETE", "PREFIX", "k"}).front(), '!');
    writer.join();
    for (int i = 0; i < kKeys; ++i)
      EXPECT_EQ(Do({"GET", fmt::format("k{}", i)}), i % 2 == 0 ? "new" : "old");
  }
}

TEST_F(UndoTest, AHundredThousandKeysComeBackInOneStep) {
  constexpr int kKeys = 100'000;
  for (int i = 0; i < kKeys; i += 1000) {
    Words mset = {"MSET"};
    for (int k = i; k < i + 1000; ++k) {
      mset.push_back(fmt::format("key{:06}", k));
      mset.push_back("value");
    }
    ASSERT_EQ(Do(mset), "OK");
  }
  Write({"FLUSHALL"});
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "key"}), std::to_string(kKeys));
  EXPECT_EQ(Do({"COUNT", "[key", "(l"}), std::to_string(kKeys));
}

}  // namespace
}  // namespace varve
