// maxmemory: a bound on the bytes of keys and values.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Ask;
using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

constexpr char kRefused[] = "!OOM command not allowed when used memory > 'maxmemory'.";
constexpr size_t kLimit = 100'000;

class MaxMemoryTest : public testing::CommandTest {
 protected:
  // Writes values until one is refused, and returns how many were taken.
  int Fill(size_t value_size) {
    const std::string value(value_size, 'v');
    for (int i = 0;; ++i) {
      const std::string reply = Do({"SET", "key" + std::to_string(i), value});
      if (reply == "OK") continue;
      EXPECT_EQ(reply, kRefused);
      return i;
    }
  }
  uint64_t Bytes() { return server_.store().CountData().value(); }
  std::string Memory(const std::string& name) {
    const std::string info = Do({"INFO", "memory"});
    const size_t begin = info.find("\r\n" + name + ":") + name.size() + 3;
    return info.substr(begin, info.find('\r', begin) - begin);
  }
};

TEST_F(MaxMemoryTest, OverTheBoundOnlyCommandsThatAddDataAreRefused) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", std::to_string(kLimit)}), "OK");
  EXPECT_EQ(Memory("maxmemory"), "100000");
  EXPECT_EQ(Memory("maxmemory_human"), "97.66K");
  EXPECT_EQ(Memory("maxmemory_policy"), "noeviction");
  EXPECT_EQ(Fill(990), 100);
  EXPECT_LE(Bytes(), kLimit);
  EXPECT_EQ(Do({"SET", "key1", std::string(2000, 'v')}), kRefused);
  EXPECT_EQ(Do({"APPEND", "key1", std::string(1000, 'v')}), kRefused);
  EXPECT_EQ(Do({"SETRANGE", "key1", "2000", "x"}), kRefused);
  EXPECT_EQ(Do({"COPY", "key1", "key2000"}), kRefused);
  EXPECT_EQ(Do({"SET", "key1", std::string(990, 'w')}), "OK") << "it takes no more room";
  // Over a lower bound, nothing that could add data goes on, as in Redis.
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", "99000"}), "OK");
  for (const std::vector<std::string>& request :
       std::vector<std::vector<std::string>>{{"SET", "key1", ""},
                                             {"PUT", "key1", "x"},
                                             {"MSET", "a", "1"},
                                             {"APPEND", "key1", "x"},
                                             {"INCR", "n"},
                                             {"SETRANGE", "key1", "0", "x"},
                                             {"SETEX", "a", "10", "x"},
                                             {"COPY", "key1", "key2000"},
                                             {"BITOP", "NOT", "a", "key1"},
                                             {"NAMESPACE", "CLONE", "0", "copy"}}) {
    EXPECT_EQ(Do(request), kRefused) << request[0];
  }
  EXPECT_EQ(Do({"GET", "key1"}).size(), 990u);
  EXPECT_EQ(Do({"EXPIRE", "key2", "100"}), "1");
  EXPECT_EQ(Do({"RENAME", "key3", "keyX"}), "OK");
  EXPECT_EQ(Do({"SET", "x"}), "!ERR wrong number of arguments for 'set' command");
  EXPECT_EQ(Do({"NAMESPACE", "CREATE", "empty"}), "OK");
  EXPECT_EQ(Do({"DEL", "key1", "key2"}), "2");
  EXPECT_EQ(Do({"SET", "key1", "small"}), "OK");
  EXPECT_EQ(Do({"DELRANGE", "[key5", "(key6"}), "OK");
  EXPECT_EQ(Do({"SET", "more", std::string(10'000, 'v')}), "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory", "0"}), "OK");
  EXPECT_EQ(Do({"SET", "key1", std::string(2 * kLimit, 'v')}), "OK");
}

// With everything in one pipeline, the SETs would be committed together.
TEST_F(MaxMemoryTest, APipelineIsTakenUpToTheBound) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", std::to_string(kLimit)}), "OK");
  RawConnection raw(server_.port());
  std::string requests;
  for (int i = 0; i < 500; ++i)
    requests += Resp({"SET", "key" + std::to_string(i), std::string(990, 'v')});
  ASSERT_TRUE(raw.Send(requests));
  raw.FinishSending();
  const std::string replies = raw.ReceiveAll();
  size_t taken = 0;
  while (replies.compare(taken * 5, 5, "+OK\r\n") == 0) ++taken;
  EXPECT_EQ(replies.substr(taken * 5).find("+OK"), std::string::npos);
  EXPECT_EQ(taken, 100u);
  EXPECT_EQ(Do({"COUNT", "-", "+"}), "100");
}

TEST_F(MaxMemoryTest, ConnectionsSideBySideDoNotPassTheBound) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", std::to_string(kLimit)}), "OK");
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      const std::unique_ptr<Client> client = server_.Connect();
      for (int key = 0;; ++key) {
        const std::string name = std::to_string(i) + ":" + std::to_string(key);
        if (Ask(*client, {"SET", name, std::string(990, 'v')}) != "OK") return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(Bytes(), kLimit);
  EXPECT_GT(Bytes(), kLimit - 1000);
}

// Overwriting takes no more room, however much is written.
TEST_F(MaxMemoryTest, OnlyWhatIsThereCounts) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", std::to_string(kLimit)}), "OK");
  const std::string value(20'000, 'v');
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(Do({"SET", "key" + std::to_string(i % 4), value}), "OK") << i;
  EXPECT_EQ(Bytes(), 4 * 20'004u);
  ASSERT_EQ(Do({"SELECT", "3"}), "OK");
  EXPECT_EQ(Do({"SET", "a", value}), kRefused) << "all databases count together";
  ASSERT_EQ(Do({"SET", "a", value.substr(0, 10'000)}), "OK");
  ASSERT_EQ(Do({"FLUSHDB"}), "OK");
  ASSERT_EQ(Do({"SET", "a", std::string(19'000, 'v')}), "OK");
}

TEST_F(MaxMemoryTest, EvenTheFirstKeyIsRefusedWhereItDoesNotFit) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(Do({"SET", "k", "v"}), kRefused);
  EXPECT_EQ(Do({"SET", "", "v"}), "OK");
  EXPECT_EQ(Do({"SET", "", ""}), "OK");
}

TEST_F(MaxMemoryTest, ATransactionIsTakenAsAWholeOrRefused) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", "1000"}), "OK");
  for (const size_t size : {600, 400}) {
    ASSERT_EQ(Do({"MULTI"}), "OK");
    ASSERT_EQ(Do({"SET", "a", std::string(size, 'v')}), "QUEUED");
    ASSERT_EQ(Do({"SET", "b", std::string(size, 'v')}), "QUEUED");
    EXPECT_EQ(Do({"EXEC"}), size == 400 ? std::string("(OK OK)")
                                        : "!EXECABORT Transaction discarded because of: " +
                                              std::string(kRefused).substr(1));
  }
  EXPECT_EQ(Bytes(), 802u);
}

TEST_F(MaxMemoryTest, TransactionsAreRefusedAsInRedis) {
  ASSERT_EQ(Do({"SET", "a", "value"}), "OK");
  const std::unique_ptr<Client> other = server_.Connect();
  ASSERT_EQ(Do({"MULTI"}), "OK");
  ASSERT_EQ(Do({"SET", "a", "other"}), "QUEUED");
  ASSERT_EQ(Ask(*other, {"CONFIG", "SET", "maxmemory", "1"}), "OK");
  EXPECT_EQ(Do({"EXEC"}),
            "!EXECABORT Transaction discarded because of: " + std::string(kRefused).substr(1));
  for (const std::vector<std::string>& request : std::vector<std::vector<std::string>>{
           {"SET", "a", "other"}, {"GET", "a"}, {"DEL", "a"}, {"UNWATCH"}, {"MULTI"}, {"PING"}}) {
    ASSERT_EQ(Do({"MULTI"}), "OK");
    EXPECT_EQ(Do(request), kRefused) << request[0];
    EXPECT_EQ(Do({"EXEC"}), "!EXECABORT Transaction discarded because of previous errors.");
  }
  ASSERT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"DISCARD"}), "OK");
  ASSERT_EQ(Do({"MULTI"}), "OK");
  EXPECT_EQ(Do({"RESET"}), "RESET");
  EXPECT_EQ(Do({"GET", "a"}), "value");
  EXPECT_EQ(Do({"DEL", "a"}), "1");
}

TEST_F(MaxMemoryTest, OtherPoliciesAreRefused) {
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory-policy", "allkeys-lrm"}),
            "!ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - takes "
            "noeviction, allkeys-lru, volatile-lru, allkeys-lfu, volatile-lfu, allkeys-random, "
            "volatile-random, volatile-ttl");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory-policy", "noeviction"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory", "-1"}).substr(0, 4), "!ERR");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory", "100MiB"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "GET", "maxmemory*"}),
            "(maxmemory 104857600 maxmemory-clients 2147483648 maxmemory-eviction-tenacity 10 "
            "maxmemory-policy noeviction maxmemory-samples 5)");
}

// Nothing is sampled, and the counter of uses is that of Redis with its defaults.
TEST_F(MaxMemoryTest, WhatTunesEvictionsInRedisHasItsDefault) {
  EXPECT_EQ(Do({"CONFIG", "GET", "lfu-*"}), "(lfu-decay-time 1 lfu-log-factor 10)");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory-samples", "5", "maxmemory-eviction-tenacity", "10",
                "lfu-log-factor", "10", "lfu-decay-time", "1"}),
            "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxmemory-samples", "10"}),
            "!ERR CONFIG SET failed (possibly related to argument 'maxmemory-samples') - it is "
            "always '5'");
  const std::string stats = Do({"INFO", "stats"});
  for (const char* line :
       {"total_eviction_exceeded_time:0\r\n", "current_eviction_exceeded_time:0\r\n"})
    EXPECT_NE(stats.find(line), std::string::npos) << line << stats;
}

TEST_F(MaxMemoryTest, StatusSaysThatItLimits) {
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", "1000"}), "OK");
  EXPECT_EQ(Do({"STATUS"}).find("id maxmemory"), std::string::npos);
  EXPECT_NE(Do({"STATUS"}).find("max_data_bytes 1000"), std::string::npos);
  // It tells of the last second or two.
  EXPECT_TRUE(testing::Eventually([&] {
    EXPECT_EQ(Do({"SET", "a", std::string(1000, 'v')}), kRefused);
    return Do({"STATUS"}).find("id maxmemory") != std::string::npos;
  }));
  ASSERT_EQ(Do({"SET", "a", std::string(900, 'v')}), "OK");
  ASSERT_EQ(Do({"CONFIG", "SET", "maxmemory", "10"}), "OK");
  EXPECT_EQ(Do({"SET", "a", ""}), kRefused);
  EXPECT_NE(Do({"STATUS"}).find("id maxmemory"), std::string::npos);
}

// Inline execution counts on the thread that reads.
TEST(MaxMemoryInlineTest, TheBoundHoldsThereToo) {
  TestServer server({.execution = Execution::kInline, .max_memory = 1000});
  const std::unique_ptr<Client> client = server.Connect();
  EXPECT_EQ(Ask(*client, {"SET", "a", std::string(999, 'v')}), "OK");
  EXPECT_EQ(Ask(*client, {"SET", "b", "v"}), kRefused);
  EXPECT_EQ(Ask(*client, {"DEL", "a"}), "1");
  EXPECT_EQ(Ask(*client, {"SET", "b", "v"}), "OK");
}

}  // namespace
}  // namespace varve
