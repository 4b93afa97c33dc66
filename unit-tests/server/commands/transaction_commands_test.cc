// MULTI, EXEC, DISCARD, WATCH and UNWATCH over a socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/command_fixture.h"

namespace varve {
namespace {

class TransactionCommandsTest : public testing::CommandTest {
 protected:
  std::string Other(const std::vector<std::string>& arguments) {
    return testing::Ask(*other_, arguments);
  }
  // MULTI, the requests, EXEC; the reply to EXEC.
  std::string Transact(const std::vector<std::vector<std::string>>& requests) {
    EXPECT_EQ(Do({"MULTI"}), "OK");
    for (const auto& request : requests) EXPECT_EQ(Do(request), "QUEUED");
    return Do({"EXEC"});
  }
  static void Monitor(testing::RawConnection* monitor) {
    monitor->Send("MONITOR\r\n");
    EXPECT_EQ(monitor->Receive(5), "+OK\r\n");
  }
  // Returns the next lines that MONITOR shows, without the instants and the addresses.
  static std::vector<std::string> Shown(testing::RawConnection* monitor, size_t count) {
    std::vector<std::string> lines(count);
    for (std::string& line : lines) {
      std::string byte;
      while (!line.ends_with("\r\n") && !(byte = monitor->Receive(1)).empty()) line += byte;
      if (const size_t end = line.find(']'); end != std::string::npos)
        line = line.substr(line.find('['), 2) + line.substr(end + 1);
    }
    return lines;
  }

  std::unique_ptr<Client> other_ = server_.Connect();
};

TEST_F(TransactionCommandsTest, ExecAnswersEachRequest) {
  EXPECT_EQ(
      Transact(
          {{"SET", "a", "1"}, {"INCR", "a"}, {"GET", "a"}, {"DEL", "missing"}, {"GET", "missing"}}),
      "(OK 2 2 0 nil)");
  EXPECT_EQ(Other({"GET", "a"}), "2");
  EXPECT_EQ(Transact({}), "()");
  EXPECT_EQ(Transact({{"MSET", "b", "2", "c", "3"},
                      {"RANGE", "-", "+"},
                      {"COUNT", "-", "+"},
                      {"DBSIZE"},
                      {"KEYS", "*"}}),
            "(OK (a 2 b 2 c 3) 3 3 (a b c))");
  EXPECT_EQ(Transact({{"FLUSHALL"},
                      {"DBSIZE"},
                      {"SET", "x", "1"},
                      {"MGET", "a", "x"},
                      {"DELRANGE", "[x", "+"},
                      {"EXISTS", "x"}}),
            "(OK 0 OK (nil 1) OK 0)");
  EXPECT_EQ(Do({"DBSIZE"}), "0");
}

TEST_F(TransactionCommandsTest, NothingShowsBeforeExecAndDiscardForgets) {
  Do({"MULTI"});
  EXPECT_EQ(Do({"SET", "a", "1"}), "QUEUED");
  EXPECT_EQ(Other({"GET", "a"}), "nil");
  EXPECT_EQ(Do({"DISCARD"}), "OK");
  EXPECT_EQ(Do({"GET", "a"}), "nil");
  EXPECT_EQ(Do({"DISCARD"}), "!ERR DISCARD without MULTI");
  EXPECT_EQ(Do({"EXEC"}), "!ERR EXEC without MULTI");
}

TEST_F(TransactionCommandsTest, AnErrorWhileQueueingKeepsAllOfIt) {
  Do({"MULTI"});
  EXPECT_EQ(Do({"SET", "a", "1"}), "QUEUED");
  EXPECT_EQ(Do({"GET"}), "!ERR wrong number of arguments for 'get' command");
  EXPECT_EQ(Do({"SET", "a", "2"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "!EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(Do({"GET", "a"}), "nil");
  for (const std::vector<std::string>& refused : {std::vector<std::string>{"NOSUCHCOMMAND"},
                                                  {"CLIENT", "nosuch"},
                                                  {"CLIENT", "ID", "surplus"},
                                                  {"SAVE"},
                                                  {"SHUTDOWN"},
                                                  {"COMPACT"}}) {
    Do({"MULTI"});
    EXPECT_EQ(Do(refused).substr(0, 4), "!ERR") << refused[0];
    EXPECT_EQ(Do({"EXEC"}).substr(0, 10), "!EXECABORT") << refused[0];
  }
  Do({"MULTI"});
  EXPECT_EQ(
      Do({"EXEC", "surplus"}),
      "!EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
  EXPECT_EQ(Do({"GET", "a"}), "nil");
}

TEST_F(TransactionCommandsTest, AnErrorInsideExecDoesNotStopTheRest) {
  EXPECT_EQ(Transact({{"SET", "a", "text"}, {"INCR", "a"}, {"SET", "b", "1"}}),
            "(OK !ERR value is not an integer or out of range OK)");
  EXPECT_EQ(Do({"GET", "b"}), "1");
}

TEST_F(TransactionCommandsTest, WhatCanNotBeInsideIsRefused) {
  Do({"MULTI"});
  EXPECT_EQ(Do({"MULTI"}), "!ERR MULTI calls can not be nested");
  EXPECT_EQ(Do({"WATCH", "a"}), "!ERR WATCH inside MULTI is not allowed");
  EXPECT_EQ(Do({"MONITOR"}), "QUEUED");
  EXPECT_EQ(Do({"EXEC"}), "(!ERR MONITOR isn't allowed for DENY BLOCKING client)");
  Do({"MULTI"});
  EXPECT_EQ(Do({"RESET"}), "RESET");
  EXPECT_EQ(Do({"EXEC"}), "!ERR EXEC without MULTI");
}

TEST_F(TransactionCommandsTest, AWatchedKeyThatWasWrittenStopsExec) {
  struct Case {
    std::vector<std::string> before, write;
    bool stops;
  };
  const std::vector<Case> cases = {
      {{"SET", "w", "1"}, {"SET", "w", "1"}, true},
      {{"SET", "w", "1"}, {"DEL", "w"}, true},
      {{"SET", "w", "1"}, {"DELRANGE", "[w", "[w"}, true},
      {{"SET", "w", "1"}, {"FLUSHALL"}, true},
      {{"DEL", "w"}, {"SET", "w", "1"}, true},
      {{"DEL", "w"}, {"FLUSHALL"}, false},
      {{"DEL", "w"}, {"DEL", "w"}, false},
      {{"SET", "w", "1"}, {"SET", "v", "1"}, false},
      {{"SET", "w", "1"}, {"GET", "w"}, false},
      {{"SET", "w", "1"}, {"SETNX", "w", "2"}, false},
  };
  for (const Case& each : cases) {
    Do(each.before);
    EXPECT_EQ(Do({"WATCH", "u", "w"}), "OK");
    Other(each.write);
    EXPECT_EQ(Transact({{"PING"}, {"SET", "done", "1"}}), each.stops ? "nil" : "(PONG OK)")
        << each.write[0];
    EXPECT_EQ(Transact({{"PING"}}), "(PONG)");  // it is watched no more
  }
}

TEST_F(TransactionCommandsTest, AKeyThatCameAndWentWasWritten) {
  Do({"WATCH", "w"});
  Other({"SET", "w", "1"});
  Other({"DEL", "w"});
  EXPECT_EQ(Transact({{"PING"}}), "nil");
}

TEST_F(TransactionCommandsTest, ItsOwnWritesBeforeMultiCountAsWell) {
  Do({"WATCH", "w"});
  Do({"SET", "w", "1"});
  EXPECT_EQ(Transact({{"PING"}}), "nil");
}

TEST_F(TransactionCommandsTest, UnwatchAndDiscardForgetTheKeys) {
  Do({"WATCH", "w"});
  Other({"SET", "w", "1"});
  EXPECT_EQ(Do({"UNWATCH"}), "OK");
  EXPECT_EQ(Transact({{"PING"}}), "(PONG)");
  Do({"WATCH", "w"});
  Other({"SET", "w", "2"});
  Do({"MULTI"});
  Do({"DISCARD"});
  EXPECT_EQ(Transact({{"UNWATCH"}, {"PING"}}), "(OK PONG)");
  Do({"WATCH", "w"});
  Do({"RESET"});
  Other({"SET", "w", "3"});
  EXPECT_EQ(Transact({{"PING"}}), "(PONG)");
}

TEST_F(TransactionCommandsTest, AWatchedKeyIsRememberedAcrossFlushes) {
  Do({"SET", "w", "1"});
  Do({"WATCH", "w"});
  for (int i = 0; i < 40; ++i)
    Other({"SET", "filler" + std::to_string(i), std::string(20000, 'x')});
  EXPECT_EQ(Transact({{"PING"}}), "(PONG)");
}

TEST_F(TransactionCommandsTest, IsWholeAfterARestart) {
  Transact({{"SET", "a", "1"}, {"SET", "b", "2"}, {"DEL", "a"}, {"APPEND", "b", "2"}});
  Restart();
  EXPECT_EQ(Do({"RANGE", "-", "+"}), "(b 22)");
}

TEST_F(TransactionCommandsTest, MessagesAreSentOnce) {
  testing::RawConnection subscriber(server_.port());
  const std::string subscribed = "*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n";
  subscriber.Send("SUBSCRIBE news\r\n");
  EXPECT_EQ(subscriber.Receive(subscribed.size()), subscribed);
  EXPECT_EQ(Transact({{"SET", "a", "1"}, {"PUBLISH", "news", "hello"}, {"GET", "missing"}}),
            "(OK 1 nil)");
  const std::string message = "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n";
  subscriber.Send("PING\r\n");
  const std::string pong = "*2\r\n$4\r\npong\r\n$0\r\n\r\n";
  EXPECT_EQ(subscriber.Receive(message.size() + pong.size()), message + pong);
}

TEST_F(TransactionCommandsTest, IsShownInTheListOfClientsAndInTheStatistics) {
  EXPECT_NE(Do({"CLIENT", "LIST"}).find(" multi=-1 "), std::string::npos);
  Do({"CONFIG", "RESETSTAT"});
  Do({"MULTI"});
  Do({"SET", "a", "1"});
  Do({"SET", "a", "2"});
  const std::string list = Other({"CLIENT", "LIST"});
  EXPECT_NE(list.find(" multi=2 "), std::string::npos) << list;
  EXPECT_EQ(Other({"INFO", "commandstats"}).find("cmdstat_set"), std::string::npos);
  Do({"EXEC"});
  EXPECT_NE(Other({"INFO", "commandstats"}).find("cmdstat_set:calls=2,"), std::string::npos);
  EXPECT_NE(Other({"INFO", "commandstats"}).find("cmdstat_exec:calls=1,"), std::string::npos);
}

TEST_F(TransactionCommandsTest, ManyKeysAreWatchedWithoutLookingAtEachOther) {
  constexpr int kKeys = 50000;
  std::vector<std::string> watch = {"WATCH"};
  for (int i = 0; i < kKeys; ++i) watch.push_back("key" + std::to_string(i));
  const auto since = std::chrono::steady_clock::now();
  EXPECT_EQ(Do(watch), "OK");
  const auto once = std::chrono::steady_clock::now() - since;
  watch.insert(watch.end(), watch.begin() + 1, watch.end());
  EXPECT_EQ(Do(watch), "OK");
  // Key by key against all others it would be a hundred times as long.
  EXPECT_LT(std::chrono::steady_clock::now() - since, 20 * once + std::chrono::milliseconds(500));
  const std::string list = Do({"CLIENT", "LIST"});
  const size_t memory = std::stoul(list.substr(list.find(" multi-mem=") + 11));
  EXPECT_LT(memory, 160u * kKeys) << "each key counts once";
  Other({"SET", "key777", "1"});
  EXPECT_EQ(Transact({{"PING"}}), "nil");
}

TEST_F(TransactionCommandsTest, WhatIsQueuedCountsWithItsAllocations) {
  Do({"MULTI"});
  for (int i = 0; i < 10; ++i) Do({"PING"});
  const std::string list = Other({"CLIENT", "LIST"});
  const size_t at = list.find(" multi=10 ");
  ASSERT_NE(at, std::string::npos) << list;
  EXPECT_GE(std::stoul(list.substr(list.find(" multi-mem=", at) + 11)), 10u * 100) << list;
}

TEST_F(TransactionCommandsTest, ItsCommandsAreInTheSlowLogAndShownInTheDatabaseTheyLeave) {
  Do({"CONFIG", "SET", "slowlog-log-slower-than", "0"});
  Do({"SLOWLOG", "RESET"});
  testing::RawConnection monitor(server_.port());
  Monitor(&monitor);
  Do({"WATCH", "a"});
  EXPECT_EQ(Transact({{"SELECT", "2"}, {"GET", "a"}}), "(OK nil)");
  const std::string log = Do({"SLOWLOG", "GET"});
  for (const char* shown : {"(WATCH a)", "(MULTI)", "(SELECT 2)", "(GET a)"}) {
    EXPECT_NE(log.find(shown), std::string::npos) << shown << " in " << log;
  }
  EXPECT_EQ(log.find("(EXEC)"), std::string::npos) << log;
  EXPECT_THAT(
      Shown(&monitor, 5),
      ::testing::ElementsAre("[0 \"WATCH\" \"a\"\r\n", "[0 \"MULTI\"\r\n",
                             "[2 \"SELECT\" \"2\"\r\n", "[2 \"GET\" \"a\"\r\n", "[2 \"EXEC\"\r\n"));
}

TEST_F(TransactionCommandsTest, ExecIsShownBehindItsCommandsAlsoInSlices) {
  testing::RawConnection monitor(server_.port());
  Monitor(&monitor);
  std::vector<std::string> set = {"MSET"};
  for (int key = 0; key < 1000; ++key) set.insert(set.end(), {std::to_string(key), "v"});
  ASSERT_EQ(Do(set), "OK");
  EXPECT_EQ(Shown(&monitor, 1).front().substr(0, 10), "[0 \"MSET\" ");
  ASSERT_EQ(Do({"MULTI"}), "OK");
  constexpr size_t kRanges = 50;  // together they take many slices
  for (size_t i = 0; i < kRanges; ++i) ASSERT_EQ(Do({"RANGE", "-", "+"}), "QUEUED");
  Do({"EXEC"});
  const std::vector<std::string> lines = Shown(&monitor, 2 + kRanges);
  EXPECT_EQ(lines.front(), "[0 \"MULTI\"\r\n");
  for (size_t i = 1; i <= kRanges; ++i) EXPECT_EQ(lines[i], "[0 \"RANGE\" \"-\" \"+\"\r\n") << i;
  EXPECT_EQ(lines.back(), "[0 \"EXEC\"\r\n");
  // One that does not come to its commands.
  Do({"WATCH", "a"});
  Other({"SET", "a", "1"});
  EXPECT_EQ(Transact({{"GET", "a"}}), "nil");
  EXPECT_THAT(Shown(&monitor, 4),
              ::testing::ElementsAre("[0 \"WATCH\" \"a\"\r\n", "[0 \"SET\" \"a\" \"1\"\r\n",
                                     "[0 \"MULTI\"\r\n", "[0 \"EXEC\"\r\n"));
}

TEST_F(TransactionCommandsTest, CountersSideBySideLoseNothing) {
  constexpr int kThreads = 3, kEach = 60;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      const std::unique_ptr<Client> client = server_.Connect();
      for (int i = 0; i < kEach; ++i) {
        testing::Ask(*client, {"MULTI"});
        testing::Ask(*client, {"INCR", "x"});
        testing::Ask(*client, {"INCR", "y"});
        testing::Ask(*client, {"MGET", "x", "y"});
        const std::string reply = testing::Ask(*client, {"EXEC"});
        const size_t x_end = reply.find(' '), y_end = reply.find(' ', x_end + 1);
        const std::string x = reply.substr(1, x_end - 1),
                          y = reply.substr(x_end + 1, y_end - x_end - 1);
        if (x != y || reply != "(" + x + " " + y + " (" + x + " " + y + "))") ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Do({"MGET", "x", "y"}), "(180 180)");
}

}  // namespace
}  // namespace varve
