// All kinds of writes make room, and feeds tell of what went for it, over a socket.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::ManualClock;
using testing::TestServer;
using Words = std::vector<std::string>;

EngineOptions WithPast(const Clock* clock) {
  EngineOptions options = TestServer::SmallEngine();
  options.clock = clock;
  options.changes.bytes = 1u << 20;
  options.history.time_ms = 86'400'000;
  return options;
}

class EvictionWritesTest : public ::testing::Test {
 protected:
  EvictionWritesTest() {
    EXPECT_EQ(Do({"NAMESPACE", "CREATE", "cache", "MAXBYTES", "10000", "EVICT", "lru"}), "OK");
    EXPECT_EQ(Do({"NAMESPACE", "USE", "cache"}), "OK");
    server_.server().state().evictor.RunRound();
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  static std::string Name(int key) { return "k" + std::to_string(100'000 + key); }
  // Keys of 7 bytes with values of 93, one after the other.
  void Fill(int from, int to) {
    for (int key = from; key < to; ++key) {
      clock_.Advance(10);
      ASSERT_EQ(Do({"SET", Name(key), value_}), "OK") << key;
    }
  }
  int Count(int from, int to) {
    int there = 0;
    for (int key = from; key < to; ++key) there += Do({"STRLEN", Name(key)}) == "93" ? 1 : 0;
    return there;
  }
  std::string Evicted() {
    const std::string info = Do({"INFO", "stats"});
    const size_t begin = info.find("evicted_keys:") + 13;
    return info.substr(begin, info.find('\r', begin) - begin);
  }

  const std::string value_ = std::string(93, 'v');
  ManualClock clock_;
  TestServer server_{ServerOptions(), WithPast(&clock_)};
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(EvictionWritesTest, UndeleteMakesRoom) {
  Fill(0, 50);
  ASSERT_EQ(Do({"DELRANGE", "[" + Name(0), "(" + Name(40)}), "OK");
  Fill(100, 189);
  ASSERT_EQ(Evicted(), "0");
  clock_.Advance(10);
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "k1000"}), "40");
  EXPECT_EQ(Count(0, 40), 40);
  EXPECT_EQ(Count(40, 50), 0) << "they were used longest ago";
  EXPECT_EQ(Count(150, 189), 39);
}

TEST_F(EvictionWritesTest, UndeleteOfMoreThanFitsEvictsNothing) {
  Fill(0, 90);
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXBYTES", "0", "MAXKEYS", "1000"}), "OK");
  Fill(100, 190);
  ASSERT_EQ(Do({"DELRANGE", "[" + Name(0), "(" + Name(190)}), "OK");
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXBYTES", "10000"}), "OK");
  Fill(200, 210);
  EXPECT_EQ(Do({"UNDELETE", "PREFIX", "k"}).substr(0, 6), "!QUOTA");
  EXPECT_EQ(Evicted(), "0");
  EXPECT_EQ(Count(200, 210), 10);
}

TEST_F(EvictionWritesTest, AnIngestMakesRoom) {
  Fill(0, 95);
  Words add = {"INGEST", "ADD", "load"};
  for (int key = 500; key < 550; ++key) add.insert(add.end(), {Name(key), value_});
  ASSERT_EQ(Do({"INGEST", "BEGIN", "load"}), "OK");
  ASSERT_EQ(Do(add), "OK");
  EXPECT_EQ(Count(0, 95), 95) << "nothing goes before the commit";
  const std::string version = Do({"INGEST", "COMMIT", "load"});
  EXPECT_GT(std::atoll(version.c_str()), 0) << version;
  EXPECT_EQ(Count(500, 550), 50);
  EXPECT_EQ(Count(0, 45), 0);
  EXPECT_GE(Count(55, 95), 40);
}

TEST_F(EvictionWritesTest, AnIngestOfMoreThanFitsEvictsNothing) {
  Fill(0, 95);
  Words add = {"INGEST", "ADD", "load"};
  for (int key = 500; key < 650; ++key) add.insert(add.end(), {Name(key), value_});
  ASSERT_EQ(Do({"INGEST", "BEGIN", "load"}), "OK");
  ASSERT_EQ(Do(add), "OK");
  EXPECT_EQ(Do({"INGEST", "COMMIT", "load"}).substr(0, 6), "!QUOTA");
  EXPECT_EQ(Count(0, 95), 95);
  // The ingest waits for room, as without evictions.
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXBYTES", "16000"}), "OK");
  EXPECT_NE(Do({"INGEST", "COMMIT", "load"})[0], '!');
  EXPECT_EQ(Count(500, 650), 150);
}

// The room that EXEC needs is that of the keys it writes: neither of what it has read, nor of the
// memory that it takes.
TEST_F(EvictionWritesTest, ATransactionOfManyKeysMakesRoomForThem) {
  Fill(0, 95);
  ASSERT_EQ(Do({"MULTI"}), "OK");
  for (int key = 0; key < 95; ++key) ASSERT_EQ(Do({"STRLEN", Name(key)}), "QUEUED");
  for (int key = 500; key < 590; ++key) ASSERT_EQ(Do({"SET", Name(key), value_}), "QUEUED");
  const std::string replies = Do({"EXEC"});
  EXPECT_EQ(replies.find('!'), std::string::npos) << replies;
  EXPECT_EQ(Count(500, 590), 90);
  EXPECT_LE(Count(0, 95), 10);
}

TEST_F(EvictionWritesTest, ATransactionOfMoreThanFitsEvictsNothing) {
  Fill(0, 95);
  const auto exec = [&](int from, int to) {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    for (int key = from; key < to; ++key) EXPECT_EQ(Do({"SET", Name(key), value_}), "QUEUED");
    return Do({"EXEC"});
  };
  EXPECT_NE(exec(500, 650).find("QUOTA"), std::string::npos);
  EXPECT_EQ(Count(0, 95), 95);
  ASSERT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXBYTES", "0", "MAXKEYS", "100"}), "OK");
  EXPECT_NE(exec(500, 650).find("QUOTA"), std::string::npos);
  EXPECT_EQ(Count(0, 95), 95);
  EXPECT_EQ(Evicted(), "0");
  const std::string replies = exec(500, 580);
  EXPECT_EQ(replies.find('!'), std::string::npos) << replies;
  EXPECT_EQ(Count(500, 580), 80);
  EXPECT_GE(Count(80, 95), 10) << "no more goes than has to, and a hundredth";
}

TEST_F(EvictionWritesTest, TheRuleGoesWithTheQuota) {
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXBYTES", "0"}),
            "!ERR EVICT makes room at a quota: give MAXBYTES or MAXKEYS, or EVICT none");
  EXPECT_EQ(Do({"NAMESPACE", "ALTER", "cache", "MAXBYTES", "0", "EVICT", "none"}), "OK");
  Fill(0, 200);
  EXPECT_EQ(Count(0, 200), 200);
}

TEST_F(EvictionWritesTest, ATransactionThatIsExecutedOnceMakesRoom) {
  for (int key = 0; key < 300; ++key) {
    clock_.Advance(10);
    ASSERT_EQ(Do({"MULTI"}), "OK");
    ASSERT_EQ(Do({"SET", Name(key), value_}), "QUEUED");
    // To publish twice would be wrong.
    ASSERT_EQ(Do({"PUBLISH", "channel", "message"}), "QUEUED");
    ASSERT_EQ(Do({"EXEC"}), "(OK 0)") << key;
  }
  EXPECT_EQ(Count(210, 300), 90);
  EXPECT_EQ(Count(0, 190), 0);
}

TEST_F(EvictionWritesTest, ChangesTellOfEvictions) {
  const std::string position = Do({"CHANGES", "NOW"});
  const std::string before = position.substr(position.find(' ') + 1);
  Fill(0, 300);
  std::string told;
  int evicted = 0;
  // The evictor may still be at it.
  EXPECT_TRUE(Eventually([&] {
    told = Do({"CHANGES", "SINCE", before.substr(0, before.find(' ')), "COUNT", "10000", "KEYS"});
    evicted = 0;
    for (int key = 0; key < 300; ++key) {
      const bool is_told = told.find("(evicted cache " + Name(key) + " nil") != std::string::npos;
      if (is_told != (Count(key, key + 1) == 0)) return false;
      evicted += is_told;
    }
    return std::to_string(evicted) == Evicted();
  })) << told;
  EXPECT_GE(evicted, 200);
  EXPECT_EQ(told.find("(del "), std::string::npos) << "each is told as what it is";
}

}  // namespace
}  // namespace varve
