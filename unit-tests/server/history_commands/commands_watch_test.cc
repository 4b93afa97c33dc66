// WATCHPREFIX and WATCHRANGE: EXEC does nothing if a key of a range was written, was deleted or has
// expired since.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/clients/client_transaction.h"
#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::ManualClock;
using testing::TestServer;
using Words = std::vector<std::string>;

class WatchRangeTest : public testing::CommandTest {
 protected:
  std::string Other(const Words& request) { return Ask(*other_, request); }
  // Executes a write behind the watches; "(OK)" or, where something changed, "nil".
  std::string Exec() {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    EXPECT_EQ(Do({"SET", "done", "x"}), "QUEUED");
    return Do({"EXEC"});
  }
  // What EXEC answers when another client did this behind WATCHPREFIX p/.
  std::string ExecAfter(const Words& request) {
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
    EXPECT_NE(Other(request).front(), '!') << request[0];
    return Exec();
  }
  void Flush() { ASSERT_TRUE(server_.store().Flush().ok()); }

  std::unique_ptr<Client> other_ = server_.Connect();
};

TEST_F(WatchRangeTest, AWriteInThePrefixIsAChange) {
  ASSERT_EQ(Do({"MSET", "p/a", "1", "p/b", "2", "q", "3", "p", "4"}), "OK");
  EXPECT_EQ(ExecAfter({"PING"}), "(OK)");
  EXPECT_EQ(ExecAfter({"SET", "p/a", "1"}), "nil") << "also the value that it had";
  EXPECT_EQ(ExecAfter({"SET", "p/new", "1"}), "nil");
  EXPECT_EQ(ExecAfter({"DEL", "p/b"}), "nil");
  EXPECT_EQ(ExecAfter({"APPEND", "p/a", "x"}), "nil");
  EXPECT_EQ(ExecAfter({"EXPIRE", "p/a", "1000"}), "nil");
  EXPECT_EQ(ExecAfter({"RENAME", "p/a", "p/c"}), "nil");
  EXPECT_EQ(ExecAfter({"SET", "q", "5"}), "(OK)");
  EXPECT_EQ(ExecAfter({"SET", "p", "5"}), "(OK)");
  EXPECT_EQ(ExecAfter({"SET", "p0", "5"}), "(OK)");
  EXPECT_EQ(ExecAfter({"DEL", "p/none"}), "(OK)");
  EXPECT_EQ(ExecAfter({"GET", "p/c"}), "(OK)");
  EXPECT_EQ(ExecAfter({"DELRANGE", "[p/x", "[p/z"}), "nil");
  EXPECT_EQ(ExecAfter({"DELRANGE", "[p0", "[p1"}), "(OK)");
  EXPECT_EQ(ExecAfter({"DELPREFIX", "p"}), "nil");
  EXPECT_EQ(ExecAfter({"FLUSHDB"}), "nil");
  EXPECT_EQ(ExecAfter({"FLUSHALL"}), "nil");
  EXPECT_EQ(ExecAfter({"SWAPDB", "0", "3"}), "nil");
  EXPECT_EQ(ExecAfter({"SWAPDB", "4", "3"}), "(OK)");
}

TEST_F(WatchRangeTest, RangesHaveTheBoundsOfRANGE) {
  const auto after = [&](const std::string& min, const std::string& max, const std::string& key) {
    EXPECT_EQ(Do({"WATCHRANGE", min, max}), "OK");
    EXPECT_EQ(Other({"SET", key, "v"}), "OK");
    return Exec();
  };
  EXPECT_EQ(after("[b", "[d", "b"), "nil");
  EXPECT_EQ(after("[b", "[d", "d"), "nil");
  EXPECT_EQ(after("(b", "(d", "b"), "(OK)");
  EXPECT_EQ(after("(b", "(d", "d"), "(OK)");
  EXPECT_EQ(after("(b", "(d", "c"), "nil");
  EXPECT_EQ(after("-", "+", "zz"), "nil");
  EXPECT_EQ(after("[d", "[b", "c"), "(OK)") << "no key is in it";
  EXPECT_EQ(Do({"WATCHRANGE", "b", "d"}), "!ERR min or max not valid string range item");
}

TEST_F(WatchRangeTest, TheClientsOwnWritesCount) {
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Do({"SET", "p/own", "1"}), "OK");
  EXPECT_EQ(Exec(), "nil");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"SET", "p/own", "2"}), "QUEUED");
  EXPECT_EQ(Do({"DELPREFIX", "p/"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(OK OK)");
}

// The watch outlives the write buffers, and what merges drop.
TEST_F(WatchRangeTest, AFlushHidesNoChangeAndMakesNone) {
  ASSERT_EQ(Do({"MSET", "p/a", "1", "q", "1"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Other({"SET", "q", "2"}), "OK");
  Flush();
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Other({"SET", "q", "3"}), "OK");
  Flush();
  EXPECT_EQ(Exec(), "(OK)");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Other({"SET", "p/new", "1"}), "OK");
  EXPECT_EQ(Other({"DEL", "p/new"}), "1");
  Flush();
  EXPECT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Exec(), "nil") << "nothing is left of the key";
  for (const Words& change : std::vector<Words>{
           {"DELRANGE", "[p/b", "[p/c"}, {"FLUSHDB"}, {"SET", "p/z", "1"}, {"DEL", "p/z"}}) {
    if (change[0] == "DEL") {
      ASSERT_EQ(Do({"SET", "p/z", "1"}), "OK");
    }
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
    EXPECT_NE(Other(change).front(), '!');
    Flush();
    EXPECT_EQ(Do({"COMPACT"}), "OK");
    EXPECT_EQ(Exec(), "nil") << change[0];
  }
}

TEST_F(WatchRangeTest, ManyWritesBesideTheRangeAreNoChange) {
  ASSERT_EQ(Do({"SET", "p/a", "1"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  const std::string value(1000, 'v');
  for (int i = 0; i < 3000; ++i)  // several buffers
    ASSERT_EQ(Other({"SET", (i % 2 == 0 ? "o" : "q") + std::to_string(i), value}), "OK");
  EXPECT_EQ(Exec(), "(OK)");
}

TEST_F(WatchRangeTest, SeveralWatchesInSeveralDatabases) {
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Do({"SELECT", "5"}), "OK");
  EXPECT_EQ(Do({"WATCHRANGE", "[a", "[b"}), "OK");
  EXPECT_EQ(Do({"SELECT", "2"}), "OK");
  EXPECT_EQ(Other({"SELECT", "2"}), "OK");
  EXPECT_EQ(Other({"MSET", "p/1", "x", "a", "x"}), "OK");
  EXPECT_EQ(Exec(), "(OK)") << "nobody watches there";
  for (const std::string database : {"0", "5"}) {
    EXPECT_EQ(Do({"SELECT", "0"}), "OK");
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
    EXPECT_EQ(Do({"SELECT", "5"}), "OK");
    EXPECT_EQ(Do({"WATCHRANGE", "[a", "[b"}), "OK");
    EXPECT_EQ(Other({"SELECT", database}), "OK");
    EXPECT_EQ(Other({"SET", database == "0" ? "p/1" : "a", "x"}), "OK");
    EXPECT_EQ(Exec(), "nil") << database;
  }
}

TEST_F(WatchRangeTest, ANamespaceThatIsDroppedOrMadeAnewIsAChange) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "n"}), "OK");
  for (const bool anew : {false, true}) {
    ASSERT_EQ(Do({"NAMESPACE", "USE", "n"}), "OK");
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
    ASSERT_EQ(Do({"SELECT", "0"}), "OK");
    EXPECT_EQ(Other({"NAMESPACE", "DROP", "n"}), "OK");
    if (anew) {
      EXPECT_EQ(Other({"NAMESPACE", "CREATE", "n"}), "OK");
    }
    EXPECT_EQ(Exec(), "nil");
    if (!anew) {
      EXPECT_EQ(Other({"NAMESPACE", "CREATE", "n"}), "OK");
    }
  }
}

TEST_F(WatchRangeTest, UnwatchDiscardExecAndResetForget) {
  for (const Words& forget : std::vector<Words>{{"UNWATCH"}, {"RESET"}}) {
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
    EXPECT_EQ(Other({"SET", "p/a", "1"}), "OK");
    Do(forget);
    EXPECT_EQ(Exec(), "(OK)") << forget[0];
  }
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Other({"SET", "p/a", "1"}), "OK");
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"DISCARD"}), "OK");
  EXPECT_EQ(Exec(), "(OK)");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Other({"SET", "p/a", "1"}), "OK");
  EXPECT_EQ(Exec(), "nil");
  EXPECT_EQ(Exec(), "(OK)");
  // The first watch counts, not the second one.
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Other({"SET", "p/a", "1"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  EXPECT_EQ(Exec(), "nil");
}

TEST_F(WatchRangeTest, LimitsAndMistakes) {
  EXPECT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "p"}), "!ERR WATCHPREFIX inside MULTI is not allowed");
  EXPECT_EQ(Do({"WATCHRANGE", "-", "+"}), "!ERR WATCHRANGE inside MULTI is not allowed");
  EXPECT_EQ(Do({"PING"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(PONG)");
  EXPECT_EQ(Do({"WATCHPREFIX"}), "!ERR wrong number of arguments for 'watchprefix' command");
  EXPECT_EQ(Do({"WATCHRANGE", "-"}), "!ERR wrong number of arguments for 'watchrange' command");
  for (size_t i = 0; i < kMaxWatchedRanges; ++i)
    ASSERT_EQ(Do({"WATCHPREFIX", "p" + std::to_string(i)}), "OK");
  const std::string refused =
      "!ERR more than 1000 ranges, or 16777216 bytes of keys and ranges, can not be watched";
  EXPECT_EQ(Do({"WATCHPREFIX", "one more"}), refused);
  EXPECT_EQ(Do({"WATCHPREFIX", "p7"}), "OK") << "which is watched already";
  EXPECT_EQ(Other({"SET", "p999", "x"}), "OK");
  EXPECT_EQ(Exec(), "nil");
  const std::string longest(65'000, 'k');
  std::string answer = "OK";
  for (int i = 0; answer == "OK" && i < 300; ++i)
    answer = Do({"WATCHPREFIX", longest + std::to_string(i)});
  EXPECT_EQ(answer, refused);
  EXPECT_EQ(Exec(), "(OK)");
}

TEST_F(WatchRangeTest, RightsToTheWholeRange) {
  ASSERT_EQ(
      Do({"ACL", "SETUSER", "alice", "on", "nopass", "+@all", "%R~app/*", "~own*", "%W~log/*"}),
      "OK");
  ASSERT_EQ(Do({"AUTH", "alice", "any"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "app/"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "app/x"}), "OK");
  EXPECT_EQ(Do({"WATCHRANGE", "[own1", "[own9"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "ap"}),
            "!NOPERM this user has no permissions to read every key in the range ap*");
  EXPECT_EQ(Do({"WATCHPREFIX", "log/"}),
            "!NOPERM this user has no permissions to read every key in the range log/*");
  EXPECT_EQ(Do({"WATCHRANGE", "-", "+"}),
            "!NOPERM this user has no permissions to read every key in the range - +");
  EXPECT_EQ(Do({"UNWATCH"}), "OK");
  ASSERT_EQ(Do({"AUTH", "default", ""}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "carol", "on", "nopass", "+@all", "-@transaction", "~*"}), "OK");
  ASSERT_EQ(Do({"AUTH", "carol", "any"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "a"}),
            "!NOPERM this user has no permissions to run the 'watchprefix' command");
}

// EXEC with PUBLISH runs while other writers wait.
TEST_F(WatchRangeTest, BesideExclusiveWrites) {
  for (const bool changes : {false, true}) {
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
    if (changes) {
      EXPECT_EQ(Other({"SET", "p/x", "1"}), "OK");
    }
    EXPECT_EQ(Do({"MULTI"}), "OK");
    EXPECT_EQ(Do({"PUBLISH", "c", "m"}), "QUEUED");
    EXPECT_EQ(Do({"SET", "p/y", "1"}), "QUEUED");
    EXPECT_EQ(Do({"EXEC"}), changes ? "nil" : "(0 OK)");
  }
}

// Each client adds a key that numbers those of the range. Without the watch two would take one
// number.
TEST_F(WatchRangeTest, WritersTakeTurns) {
  constexpr int kWriters = 4, kEach = 25;
  std::vector<std::thread> threads;
  std::atomic<int> conflicts{0};
  for (int id = 0; id < kWriters; ++id) {
    threads.emplace_back([&, id] {
      const std::unique_ptr<Client> client = server_.Connect();
      for (int added = 0; added < kEach;) {
        ASSERT_EQ(Ask(*client, {"WATCHPREFIX", "n/"}), "OK");
        const std::string count = Ask(*client, {"COUNT", "[n/", "(n0"});
        ASSERT_EQ(Ask(*client, {"MULTI"}), "OK");
        ASSERT_EQ(Ask(*client, {"SETNX", "n/" + count, std::to_string(id)}), "QUEUED");
        const std::string answer = Ask(*client, {"EXEC"});
        if (answer == "nil") {
          ++conflicts;
          continue;
        }
        ASSERT_EQ(answer, "(1)") << count;
        ++added;
        if (added % 10 == 0) {
          ASSERT_TRUE(server_.store().Flush().ok());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Do({"COUNT", "[n/", "(n0"}), std::to_string(kWriters * kEach));
}

class WatchExpiryTest : public ::testing::Test {
 protected:
  static EngineOptions WithClock(const ManualClock* clock) {
    EngineOptions options = TestServer::SmallEngine();
    options.clock = clock;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  std::string Exec() {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    EXPECT_EQ(Do({"SET", "done", "x"}), "QUEUED");
    return Do({"EXEC"});
  }

  ManualClock clock_;
  TestServer server_{{}, WithClock(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(WatchExpiryTest, AKeyWhoseTimeCameIsAChange) {
  for (const bool swept : {false, true}) {
    for (const bool flushed : {false, true}) {
      ASSERT_EQ(Do({"SET", "p/a", "1", "PX", "100000"}), "OK");
      ASSERT_EQ(Do({"SET", "q", "1", "PX", "50000"}), "OK");
      if (flushed) ASSERT_TRUE(server_.store().Flush().ok());
      EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
      // The sweeper sleeps for up to a second, and a pause keeps it from removing anything.
      server_.store().PauseExpiry(std::chrono::hours(1));
      clock_.Advance(60'000);
      EXPECT_EQ(Exec(), "(OK)") << "another key expired";
      EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
      clock_.Advance(60'000);
      if (swept) {
        server_.store().PauseExpiry(std::chrono::milliseconds(0));
        EXPECT_EQ(Do({"DBSIZE"}), "1");  // which removes what has expired
      }
      EXPECT_EQ(Exec(), "nil");
      server_.store().PauseExpiry(std::chrono::milliseconds(0));
      // What had expired before is no change, whenever it is removed.
      EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
      EXPECT_EQ(Do({"DBSIZE"}), "1");
      EXPECT_EQ(Exec(), "(OK)");
    }
  }
}

TEST_F(WatchExpiryTest, AKeyOfAClonesSourceIsAChangeToo) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "source"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "source"}), "OK");
  ASSERT_EQ(Do({"SET", "p/a", "1", "PX", "100000"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "source", "copy"}), "OK");
  ASSERT_EQ(Do({"DEL", "p/a"}), "1");
  for (const std::string name : {"source", "copy"}) {
    ASSERT_EQ(Do({"NAMESPACE", "USE", name}), "OK");
    EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  }
  server_.store().PauseExpiry(std::chrono::hours(1));
  EXPECT_EQ(Exec(), "(OK)");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "source"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  clock_.Advance(200'000);
  EXPECT_EQ(Exec(), "(OK)") << "it was deleted there before";
}

TEST_F(WatchExpiryTest, TheCloneSeesTheExpiry) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "source"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "source"}), "OK");
  ASSERT_EQ(Do({"SET", "p/a", "1", "PX", "100000"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "source", "copy"}), "OK");
  ASSERT_EQ(Do({"DEL", "p/a"}), "1");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "copy"}), "OK");
  EXPECT_EQ(Do({"WATCHPREFIX", "p/"}), "OK");
  server_.store().PauseExpiry(std::chrono::hours(1));
  clock_.Advance(200'000);
  EXPECT_EQ(Exec(), "nil");
}

}  // namespace
}  // namespace varve
