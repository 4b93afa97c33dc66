// Eviction over a socket: which keys go, and who is told.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/event_log.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::EventLog;
using testing::Eventually;
using testing::ManualClock;
using testing::TestServer;

constexpr char kRefused[] = "!OOM command not allowed when used memory > 'maxmemory'.";

EngineOptions WithClock(const Clock* clock) {
  EngineOptions options = TestServer::SmallEngine();
  options.clock = clock;
  return options;
}

class EvictionTest : public ::testing::Test {
 protected:
  std::string Do(const std::vector<std::string>& arguments) { return Ask(*client_, arguments); }
  void Restart() {
    client_.reset();
    server_.Restart();
    client_ = server_.Connect();
    Round();
  }
  // What the evictor's thread does now and then.
  void Round() { server_.server().state().evictor.RunRound(); }
  // Does what the evictor's thread has left to do: walks, and evictions that it owes.
  void FinishWork() {
    while (*server_.server().state().evictor.WorkOn()) continue;
  }
  void Pass(uint64_t millis) {
    clock_.Advance(millis);
    Round();
  }
  uint64_t Stat(const std::string& name) {
    const std::string info = Do({"INFO", "stats"});
    const size_t begin = info.find("\r\n" + name + ":") + name.size() + 3;
    return std::stoull(info.substr(begin, info.find('\r', begin) - begin));
  }
  void UseDatabases(const std::string& policy, uint64_t bytes) {
    ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", std::to_string(bytes), "maxmemory-policy", policy}),
              "OK");
    Round();
  }
  // A key of 7 bytes with a value of 93.
  std::string Set(int key, const std::vector<std::string>& more = {}) {
    std::vector<std::string> request = {"SET", Name(key), std::string(93, 'v')};
    request.insert(request.end(), more.begin(), more.end());
    return Do(request);
  }
  static std::string Name(int key) { return "k" + std::to_string(100'000 + key); }
  bool Has(int key) { return Do({"GET", Name(key)}) != "nil"; }
  size_t Count(int from, int to) {
    size_t there = 0;
    for (int key = from; key < to; ++key) there += Do({"STRLEN", Name(key)}) == "93" ? 1 : 0;
    return there;
  }

  ManualClock clock_;
  TestServer server_{ServerOptions(), WithClock(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

// The I/O thread finds that there is no room, and leaves the request to a thread that makes some.
TEST_F(EvictionTest, ARequestThatNeedsRoomIsAnsweredOnceByTheThreadThatMakesIt) {
  for (int key = 0; key < 50; ++key) ASSERT_EQ(Set(key), "OK");
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", "1000", "maxmemory-policy", "noeviction"}), "OK");
  ASSERT_EQ(Set(100), kRefused) << "which counts the keys, so that the next request need not";
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}), "OK");
  EXPECT_EQ(Do({"APPEND", "new", "v"}), "1");
  EXPECT_EQ(Do({"ECHO", "the next reply"}), "the next reply");
}

TEST_F(EvictionTest, KeysThatAreReadStay) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXBYTES", "100000", "EVICT", "lru"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "cache"}), "OK");
  Round();
  constexpr int kHot = 200, kKeys = 4000, kCapacity = 1000;
  for (int key = 0; key < kHot; ++key) ASSERT_EQ(Set(key), "OK");
  for (int key = kHot; key < kKeys; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK") << key;
    ASSERT_TRUE(Has(key % kHot)) << key;
    if (key % 100 == 0) Round();
  }
  FinishWork();
  const auto evicted = static_cast<double>(Stat("evicted_keys"));
  EXPECT_NEAR(evicted, kKeys - kCapacity, 0.01 * kKeys);
  EXPECT_EQ(Count(0, kHot), size_t{kHot});
  EXPECT_EQ(Stat("evicted_bytes"), Stat("evicted_keys") * 100);
}

TEST_F(EvictionTest, ALoweredNumberOfKeysIsReachedInTheBackground) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXKEYS", "5000", "EVICT", "lru"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "cache"}), "OK");
  for (int key = 0; key < 5000; ++key) ASSERT_EQ(Set(key), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXKEYS", "500"}), "OK");
  // The evictor's thread alone: it would owe more by a count from before another one evicted.
  int left = 0;
  EXPECT_TRUE(Eventually([&] {
    left = std::stoi(Do({"DBSIZE"}));
    return left <= 500;
  })) << left;
  EXPECT_GE(left, 490);
  EXPECT_EQ(Set(5000), "OK");
}

// A writer makes room for three or four keys, and the thread for twice as many.
TEST_F(EvictionTest, AQuotaThatHasRoomEvictsNothing) {
  const std::vector<std::vector<std::string>> quotas = {
      {"MAXBYTES", "64MiB", "MAXKEYS", "1000"},
      {"MAXBYTES", "100000", "MAXKEYS", "100000"},
  };
  for (const std::vector<std::string>& quota : quotas) {
    std::vector<std::string> create = {"NAMESPACE", "CREATE", "cache" + quota[1]};
    create.insert(create.end(), quota.begin(), quota.end());
    create.insert(create.end(), {"EVICT", "lru"});
    ASSERT_EQ(Do(create), "OK");
    ASSERT_EQ(Do({"NAMESPACE", "USE", "cache" + quota[1]}), "OK");
    for (int key = 0; key <= 1000; ++key) ASSERT_EQ(Set(key), "OK") << key;
    FinishWork();
    const int left = std::stoi(Do({"DBSIZE"}));
    EXPECT_GE(left, 985) << quota[1];
    EXPECT_LT(left, 1000) << quota[1];
  }
}

TEST_F(EvictionTest, ALargeValueTakesThePlaceOfOneKey) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXKEYS", "1000", "EVICT", "lru"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "cache"}), "OK");
  for (int key = 0; key < 1000; ++key) ASSERT_EQ(Set(key), "OK") << key;
  ASSERT_EQ(Do({"SET", "large", std::string(200'000, 'v')}), "OK");
  FinishWork();
  EXPECT_GE(std::stoi(Do({"DBSIZE"})), 985);
}

TEST_F(EvictionTest, TheDatabasesMakeRoomTogether) {
  UseDatabases("allkeys-lru", 100'000);
  for (int key = 0; key < 500; ++key) ASSERT_EQ(Set(key), "OK");
  Pass(1000);
  ASSERT_EQ(Do({"SELECT", "3"}), "OK");
  for (int key = 0; key < 3000; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK") << key;
  }
  EXPECT_EQ(Count(2100, 3000), 900u);
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(EvictionTest, WithoutAPolicyNothingGoes) {
  UseDatabases("noeviction", 10'000);
  std::string reply;
  for (int key = 0; key < 101; ++key) reply = Set(key);
  EXPECT_EQ(reply, kRefused);
  EXPECT_EQ(Stat("evicted_keys"), 0u);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(0)}), "0");
  // Then the policy comes, and the write goes on.
  UseDatabases("allkeys-lru", 10'000);
  EXPECT_EQ(Set(200), "OK");
  EXPECT_FALSE(Has(0));
}

TEST_F(EvictionTest, TheOrderIsTrueAfterARestart) {
  UseDatabases("allkeys-lru", 0);
  for (int key = 0; key < 1000; ++key) ASSERT_EQ(Set(key), "OK");
  Pass(100'000);
  for (int key = 0; key < 1000; key += 2) ASSERT_TRUE(Has(key));
  Pass(1000);
  Restart();
  UseDatabases("allkeys-lru", 100'000);
  for (int key = 1000; key < 1400; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK");
  }
  Pass(1000);
  for (int key = 0; key < 1000; key += 2) ASSERT_TRUE(Has(key)) << key;
}

TEST_F(EvictionTest, IdleTimesAreTrueOnDiskAndAfterARestart) {
  UseDatabases("allkeys-lru", 1'000'000);
  ASSERT_EQ(Set(1), "OK");
  ASSERT_EQ(Set(2), "OK");
  Pass(50'000);
  ASSERT_TRUE(Has(1));
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "0");
  Round();
  Pass(100'000);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "100");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(2)}), "150");
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  Restart();
  UseDatabases("allkeys-lru", 1'000'000);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "100");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(2)}), "150");
  ASSERT_EQ(Do({"CLIENT", "NO-TOUCH", "ON"}), "OK");
  ASSERT_TRUE(Has(2));
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(2)}), "150");
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(2)}).substr(0, 12), "!ERR An LFU ");
}

TEST_F(EvictionTest, TouchUsesKeysWhereReadsDoNotCount) {
  UseDatabases("allkeys-lru", 1'000'000);
  ASSERT_EQ(Set(1), "OK");
  ASSERT_EQ(Do({"CLIENT", "NO-TOUCH", "ON"}), "OK");
  Pass(50'000);
  ASSERT_TRUE(Has(1));
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "50");
  EXPECT_EQ(Do({"TOUCH", Name(1)}), "1");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "0");
}

TEST_F(EvictionTest, KeysThatAreReadOftenStay) {
  UseDatabases("allkeys-lfu", 100'000);
  for (int key = 0; key < 1000; ++key) ASSERT_EQ(Set(key), "OK");
  for (int read = 0; read < 120; ++read) {
    for (int key = 0; key < 100; ++key) ASSERT_TRUE(Has(key));
    if (read % 12 == 0) Pass(100);
  }
  Pass(100);
  EXPECT_GT(std::stoi(Do({"OBJECT", "FREQ", Name(0)})), 6);
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(500)}), "5");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(500)}).substr(0, 12), "!ERR An LFU ");
  for (int key = 1000; key < 2500; ++key) {
    clock_.Advance(1);
    ASSERT_EQ(Set(key), "OK");
  }
  EXPECT_EQ(Count(0, 100), 100u);
  Pass(600'000);
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(2499)}), "0");
}

// A thread that makes room may keep the order for a while, and other clients do not wait for that.
TEST_F(EvictionTest, TheUseOfAKeyIsToldByAThreadThatMayWait) {
  UseDatabases("allkeys-lru", 1'000'000);
  ASSERT_EQ(Set(1), "OK");
  // The requests before it are accounted once this one is answered.
  ASSERT_EQ(Do({"ECHO", "x"}), "x");
  const ServerStatistics& statistics = server_.state().statistics;
  const uint64_t pooled = statistics.batches_pooled.load(), hits = statistics.KeyspaceHits();
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "0");
  EXPECT_TRUE(Eventually([&] { return statistics.batches_pooled.load() == pooled + 1; }));
  EXPECT_EQ(statistics.KeyspaceHits(), hits + 1);
}

TEST_F(EvictionTest, DatabasesAreExchangedByAThreadThatMayWait) {
  UseDatabases("allkeys-lru", 1'000'000);
  ASSERT_EQ(Do({"ECHO", "x"}), "x");
  const ServerStatistics& statistics = server_.state().statistics;
  const uint64_t pooled = statistics.batches_pooled.load();
  EXPECT_EQ(Do({"SWAPDB", "0", "1"}), "OK");
  EXPECT_TRUE(Eventually([&] { return statistics.batches_pooled.load() == pooled + 1; }));
}

TEST_F(EvictionTest, CommandsUseKeysAsTheyDoInRedis) {
  UseDatabases("allkeys-lru", 1'000'000);
  const std::string key = Name(1);
  ASSERT_EQ(Set(1), "OK");
  const auto idle = [&] { return std::stoi(Do({"OBJECT", "IDLETIME", key})); };
  const std::vector<std::vector<std::string>> asking = {
      {"EXISTS", key},         {"TTL", key},        {"PTTL", key},
      {"EXPIRETIME", key},     {"TYPE", key},       {"OBJECT", "ENCODING", key},
      {"META", "GET", key},    {"SCAN", "0"},       {"KEYS", "*"},
      {"PREFIX", key, "KEYS"}, {"COUNT", "-", "+"}, {"MEMORY", "USAGE", key}};
  for (const std::vector<std::string>& request : asking) {
    Pass(10'000);
    const int before = idle();
    EXPECT_GE(before, 10);
    EXPECT_NE(Do(request).front(), '!') << request[0];
    EXPECT_EQ(idle(), before) << request[0];
  }
  const std::vector<std::vector<std::string>> reading = {{"GET", key},
                                                         {"MGET", key},
                                                         {"GETRANGE", key, "0", "1"},
                                                         {"STRLEN", key},
                                                         {"TOUCH", key},
                                                         {"DUMP", key},
                                                         {"GETBIT", key, "0"},
                                                         {"BITCOUNT", key},
                                                         {"LCS", key, key},
                                                         {"SET", key, "v", "NX"},
                                                         {"MSETNX", key, "v"},
                                                         {"COPY", key, "copy", "REPLACE"},
                                                         {"BITOP", "NOT", "copy", key},
                                                         {"GETEX", key},
                                                         {"PREFIX", key},
                                                         {"RANGE", "[" + key, "+"}};
  for (const std::vector<std::string>& request : reading) {
    Pass(10'000);
    EXPECT_GE(idle(), 10) << request[0];
    EXPECT_NE(Do(request).front(), '!') << request[0];
    Round();  // gives the read its time
    EXPECT_EQ(idle(), 0) << request[0];
  }
}

TEST_F(EvictionTest, CommandsThatReadBeforeTheyWriteRaiseCounts) {
  UseDatabases("allkeys-lfu", 1'000'000);
  const std::vector<std::vector<std::string>> writing = {{"INCR", "1"},
                                                         {"APPEND", "2", "5"},
                                                         {"SETRANGE", "3", "0", "5"},
                                                         {"EXPIRE", "4", "1000"},
                                                         {"SET", "5", "5", "XX"}};
  for (const std::vector<std::string>& request : writing) {
    ASSERT_EQ(Do({"SET", request[1], "5"}), "OK");
    EXPECT_EQ(Do({"OBJECT", "FREQ", request[1]}), "5");
    EXPECT_NE(Do(request).front(), '!') << request[0];
    EXPECT_EQ(Do({"OBJECT", "FREQ", request[1]}), "6") << request[0];
  }
}

TEST_F(EvictionTest, ALongReplyUsesItsFirstKeys) {
  UseDatabases("allkeys-lru", 1'000'000);
  constexpr int kKeys = 4200;
  for (int key = 0; key < kKeys; ++key) ASSERT_EQ(Set(key), "OK");
  Pass(100'000);
  ASSERT_NE(Do({"PREFIX", "k"}), "");
  Round();  // gives the reads their time
  Pass(10'000);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(0)}), "10");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(4095)}), "10");
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(4096)}), "110");
  EXPECT_EQ(Stat("eviction_noted_reads"), 4096u);
}

// Nobody tells the order of a delete, so a key may have been read in an earlier life.
TEST_F(EvictionTest, AKeyThatIsMadeAgainCountsAsANewOne) {
  UseDatabases("allkeys-lfu", 10'000);
  ASSERT_EQ(Set(0), "OK");
  ASSERT_TRUE(Has(0));
  Round();
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(0)}), "6");
  ASSERT_EQ(Do({"DEL", Name(0)}), "1");
  Pass(301'000);
  for (int key = 1; key <= 50; ++key) ASSERT_EQ(Set(key), "OK");
  Pass(299'000);
  ASSERT_EQ(Set(0), "OK");
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(0)}), "5");
  for (int key = 100; key < 160; ++key) ASSERT_EQ(Set(key), "OK");
  EXPECT_GT(Stat("evicted_keys"), 0u);
  ASSERT_TRUE(Has(0)) << "others are less used and older";
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(0)}), "6");
  Round();
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(0)}), "6");
  Pass(120'000);
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(0)}), "4");
}

TEST_F(EvictionTest, CountsOfUsesAreTrueOnDiskAndAfterARestart) {
  UseDatabases("allkeys-lfu", 1'000'000);
  ASSERT_EQ(Set(1), "OK");
  ASSERT_EQ(Set(2), "OK");
  for (int read = 0; read < 300; ++read) ASSERT_TRUE(Has(1));
  Round();
  const int uses = std::stoi(Do({"OBJECT", "FREQ", Name(1)}));
  EXPECT_GT(uses, 6);
  ASSERT_EQ(Do({"COMPACT"}), "OK");
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(1)}), std::to_string(uses));
  Restart();
  UseDatabases("allkeys-lfu", 1'000'000);
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(1)}), std::to_string(uses));
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(2)}), "5");
  Pass(181'000);
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(1)}), std::to_string(uses - 3));
  EXPECT_EQ(Do({"OBJECT", "FREQ", Name(2)}), "2");
}

TEST_F(EvictionTest, EachEvictedKeyIsToldOnce) {
  ASSERT_EQ(Do({"CONFIG", "SET", "notify-keyspace-events", "Ee"}), "OK");
  UseDatabases("allkeys-lru", 10'000);
  EventLog log(server_.port());
  for (int key = 0; key < 1000; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK");
  }
  FinishWork();
  std::map<std::string, int> told;
  for (const std::string& event : log.Take(*client_)) ++told[event];
  EXPECT_EQ(told.size(), Stat("evicted_keys"));
  for (int key = 0; key < 800; ++key)
    EXPECT_EQ(told["__keyevent@0__:evicted " + Name(key)], 1) << key;
}

// The order has two entries for a key that was written again since the last walk, and both of them
// were evicted in one batch.
TEST_F(EvictionTest, AKeyWithTwoEntriesIsEvictedOnce) {
  constexpr int kKeys = 60;
  for (int key = 0; key < kKeys; ++key) ASSERT_EQ(Set(key), "OK");
  clock_.Advance(1000);
  UseDatabases("allkeys-lru", 6'000);
  FinishWork();  // the first walk gives each key an entry, and the large write the second one
  clock_.Advance(1000);
  for (int key = 0; key < kKeys; ++key) {
    clock_.Advance(100);
    ASSERT_EQ(Set(key), "OK");
  }
  EXPECT_EQ(Stat("evicted_keys"), 0u) << "what is written again takes no more room";
  ASSERT_EQ(Do({"SET", "large", std::string(1995, 'v')}), "OK");
  FinishWork();
  const auto left = static_cast<uint64_t>(Count(0, kKeys));
  EXPECT_EQ(Stat("evicted_keys"), kKeys - left);
  EXPECT_EQ(Stat("evicted_bytes"), Stat("evicted_keys") * 100);
}

TEST_F(EvictionTest, OnlyKeysThatExpireGo) {
  for (const char* policy : {"volatile-lru", "volatile-lfu", "volatile-ttl", "volatile-random"}) {
    SCOPED_TRACE(policy);
    ASSERT_EQ(Do({"FLUSHALL"}), "OK");
    UseDatabases(policy, 10'000);
    for (int key = 0; key < 50; ++key) ASSERT_EQ(Set(key), "OK");
    for (int key = 100; key < 400; ++key) {
      clock_.Advance(10);
      ASSERT_EQ(Set(key, {"EX", "1000"}), "OK");
    }
    EXPECT_EQ(Count(0, 50), 50u);
    // What does not expire takes their places, until there is none left.
    std::string reply = "OK";
    int key = 1000;
    for (; reply == "OK"; ++key) reply = Set(key);
    EXPECT_EQ(reply, kRefused);
    EXPECT_EQ(key, 1051);
    EXPECT_EQ(Count(100, 400), 0u);
  }
}

TEST_F(EvictionTest, KeysThatExpireSoonestGoFirst) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXBYTES", "10000", "EVICT", "ttl"}), "OK");
  for (const char* space : {"0", "cache"}) {
    SCOPED_TRACE(space);
    if (space == std::string_view("0")) {
      UseDatabases("volatile-ttl", 10'000);
    } else {
      UseDatabases("noeviction", 0);
      ASSERT_EQ(Do({"NAMESPACE", "USE", space}), "OK");
    }
    for (int key = 0; key < 100; ++key)
      ASSERT_EQ(Set(key, {"EX", std::to_string(10'000 - key)}), "OK");
    ASSERT_EQ(Do({"PERSIST", Name(98)}), "1");
    for (int key = 200; key < 220; ++key) ASSERT_EQ(Set(key, {"EX", "20000"}), "OK");
    EXPECT_TRUE(Has(98));
    // The thread and the writers make room beside each other, so some more may be gone.
    EXPECT_EQ(Count(80, 98) + Count(99, 100), 0u);
    EXPECT_GE(Count(0, 60), 55u);
    EXPECT_EQ(Count(200, 220), 20u);
  }
}

// However few keys have been written since the order was walked over.
TEST_F(EvictionTest, AKeyThatIsGivenLittleTimeGoesNext) {
  UseDatabases("volatile-ttl", 10'000);
  for (int key = 0; key < 100; ++key) ASSERT_EQ(Set(key, {"EX", "10000"}), "OK");
  ASSERT_EQ(Set(100, {"EX", "10000"}), "OK");  // by now the order is there
  int next = 200;
  const auto goes = [&](int key) {
    for (int tries = 0; tries < 5 && Has(key); ++tries)
      EXPECT_EQ(Set(next++, {"EX", "20000"}), "OK");
    return !Has(key);
  };
  for (const int key : {100, 200, 201}) {
    if (!Has(key)) ASSERT_EQ(Set(key, {"EX", "9000"}), "OK");
    ASSERT_EQ(Do({"EXPIRE", Name(key), "100"}), "1");
    EXPECT_TRUE(goes(key)) << key;
  }
  ASSERT_EQ(Set(300, {"EX", "50"}), "OK");
  EXPECT_TRUE(goes(300)) << "a new key";
  ASSERT_EQ(Do({"MULTI"}), "OK");
  ASSERT_EQ(Set(301, {"EX", "40"}), "QUEUED");
  ASSERT_EQ(Do({"EXEC"}), "(OK)");
  EXPECT_TRUE(goes(301)) << "in a transaction";
  ASSERT_EQ(Do({"SELECT", "7"}), "OK");
  ASSERT_EQ(Set(302, {"EX", "30"}), "OK");
  Round();  // finds the database
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  for (int i = 0; i < 5; ++i) ASSERT_EQ(Set(next++, {"EX", "20000"}), "OK");
  ASSERT_EQ(Do({"SELECT", "7"}), "OK");
  EXPECT_FALSE(Has(302)) << "in another database";
}

TEST_F(EvictionTest, RandomKeysGo) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXKEYS", "1000", "EVICT", "random"}), "OK");
  UseDatabases("allkeys-random", 100'000);
  for (const char* space : {"0", "cache"}) {
    SCOPED_TRACE(space);
    if (space != std::string_view("0")) {
      UseDatabases("noeviction", 0);
      ASSERT_EQ(Do({"NAMESPACE", "USE", space}), "OK");
    }
    for (int key = 0; key < 2500; ++key) ASSERT_EQ(Set(key), "OK");
    // Of the newest half some are gone, and of the oldest half some are there.
    EXPECT_LT(Count(1500, 2500), 1000u);
    EXPECT_GT(Count(0, 1500), 0u);
  }
}

TEST_F(EvictionTest, TransactionsMakeRoom) {
  UseDatabases("allkeys-lru", 10'000);
  for (int key = 0; key < 300; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Do({"MULTI"}), "OK");
    ASSERT_EQ(Set(key), "QUEUED");
    ASSERT_EQ(Do({"APPEND", Name(key), "x"}), "QUEUED");
    ASSERT_EQ(Do({"EXEC"}), "(OK 94)") << key;
  }
  EXPECT_EQ(Do({"GET", Name(299)}), std::string(93, 'v') + "x");
  EXPECT_EQ(Do({"APPEND", Name(1), std::string(500, 'x')}), "500");
  EXPECT_EQ(Do({"SET", "large", std::string(20'000, 'x')}), kRefused)
      << "nothing makes room for it";
  EXPECT_EQ(Do({"STRLEN", Name(298)}), "94");
}

TEST_F(EvictionTest, AnEmptiedDatabaseBeginsAnew) {
  UseDatabases("allkeys-lru", 500'000);
  for (int key = 0; key < 5200; ++key) {
    if (key % 100 == 0) clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK");
  }
  Round();
  ASSERT_EQ(Do({"FLUSHDB"}), "OK");
  for (int key = 20'000; key < 26'000; ++key) {
    if (key % 100 == 0) clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK");
  }
  EXPECT_EQ(Count(21'500, 26'000), 4500u);
  EXPECT_EQ(Count(20'000, 20'800), 0u);
}

TEST_F(EvictionTest, SwappedKeysAreFound) {
  UseDatabases("allkeys-lru", 10'000);
  for (int key = 0; key < 80; ++key) ASSERT_EQ(Set(key), "OK");
  Pass(1000);
  ASSERT_EQ(Do({"SWAPDB", "0", "5"}), "OK");
  // The keys of database 5 make room for those of database 0.
  for (int key = 100; key < 190; ++key) ASSERT_EQ(Set(key), "OK") << key;
  EXPECT_EQ(Count(100, 190), 90u);
  ASSERT_EQ(Do({"SELECT", "5"}), "OK");
  EXPECT_LE(Count(0, 80), 10u);
}

TEST_F(EvictionTest, SwappedDatabasesForgetReads) {
  UseDatabases("allkeys-lru", 1'000'000);
  ASSERT_EQ(Do({"SELECT", "5"}), "OK");
  ASSERT_EQ(Set(1), "OK");
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  ASSERT_EQ(Set(1), "OK");
  Pass(100'000);  // finds the databases
  ASSERT_TRUE(Has(1));
  Round();  // gives the read its time
  Pass(10'000);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "10");
  ASSERT_EQ(Do({"SWAPDB", "0", "5"}), "OK");
  Pass(10'000);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "120") << "nobody read the other one";
}

TEST_F(EvictionTest, ASwapInATransactionForgetsReadsOnceItIsCommitted) {
  constexpr size_t kBound = 100'000;
  UseDatabases("allkeys-lru", kBound);
  ASSERT_EQ(Do({"SELECT", "5"}), "OK");
  ASSERT_EQ(Set(1), "OK");
  ASSERT_EQ(Do({"SELECT", "0"}), "OK");
  ASSERT_EQ(Set(1), "OK");
  Pass(100'000);  // finds the databases
  ASSERT_TRUE(Has(1));
  Round();  // gives the read its time
  Pass(10'000);
  const auto swap_and_set = [this](size_t bytes) {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    EXPECT_EQ(Do({"SWAPDB", "0", "5"}), "QUEUED");
    EXPECT_EQ(Do({"SET", "new", std::string(bytes, 'v')}), "QUEUED");
    return Do({"EXEC"});
  };
  const std::string reply = swap_and_set(2 * kBound);
  EXPECT_EQ(reply.substr(0, 11), "!EXECABORT ") << reply;
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "10") << "no database was exchanged";
  EXPECT_EQ(swap_and_set(1), "(OK OK)");
  Pass(10'000);
  EXPECT_EQ(Do({"OBJECT", "IDLETIME", Name(1)}), "120") << "nobody read the other one";
}

TEST_F(EvictionTest, ClonedKeysAreFound) {
  ASSERT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXBYTES", "20000", "EVICT", "lru"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "cache"}), "OK");
  for (int key = 0; key < 150; ++key) ASSERT_EQ(Set(key), "OK");
  Pass(1000);
  ASSERT_EQ(Do({"NAMESPACE", "CLONE", "cache", "copy"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "copy"}), "OK");
  Pass(1000);
  for (int key = 0; key < 50; ++key) ASSERT_TRUE(Has(key));
  Pass(1000);
  for (int key = 200; key < 300; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Set(key), "OK") << key;
  }
  EXPECT_EQ(Count(0, 50), 50u);
  EXPECT_LE(Count(50, 150), 50u);
  ASSERT_EQ(Do({"NAMESPACE", "USE", "cache"}), "OK");
  EXPECT_EQ(Count(0, 150), 150u) << "the source keeps what its clone evicts";
}

TEST_F(EvictionTest, RulesAreShownAndKept) {
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "a", "EVICT", "lru"}),
            "!ERR EVICT makes room at a quota: give MAXBYTES or MAXKEYS, or EVICT none");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "a", "MAXKEYS", "10", "EVICT", "mru"}),
            "!ERR 'mru' is no value for EVICT: it takes one of none, lru, lfu, ttl, random");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "a", "MAXKEYS", "10", "EVICTABLE", "volatile"}),
            "!ERR EVICTABLE volatile needs EVICT lru, lfu, ttl or random");
  ASSERT_EQ(
      Do({"NAMESPACE", "CREATE", "a", "MAXKEYS", "10", "EVICT", "ttl", "EVICTABLE", "volatile"}),
      "OK");
  Restart();
  EXPECT_NE(Do({"NAMESPACE", "INFO", "a"}).find("evict ttl evictable volatile"), std::string::npos);
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "a", "EVICT", "lru", "EVICTABLE", "all"}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "USE", "a"}), "OK");
  for (int key = 0; key < 30; ++key) ASSERT_EQ(Set(key), "OK") << key;
  EXPECT_EQ(Do({"DBSIZE"}), "10");
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "a", "EVICT", "none"}), "OK");
  EXPECT_EQ(Set(100).substr(0, 6), "!QUOTA");
}

}  // namespace
}  // namespace varve
