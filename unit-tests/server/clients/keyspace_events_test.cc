// Keyspace notifications: when they are sent, and when not. What each command tells is compared
// with Redis in unit-tests/differential.
#include "server/clients/keyspace_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/event_log.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::EventLog;
using testing::TestServer;
using Events = std::vector<std::string>;

ServerOptions Telling(const char* letters) {
  ServerOptions options;
  options.key_events = *ParseKeyEvents(letters);
  return options;
}

TEST(KeyspaceEventsTest, LettersAndBits) {
  for (const char* letters : {"", "K", "g$KE", "AKE", "lshzxetdKEmn", "AKEmn"}) {
    EXPECT_EQ(ShowKeyEvents(*ParseKeyEvents(letters)), letters);
  }
  EXPECT_EQ(ShowKeyEvents(*ParseKeyEvents("EKdtexzhsl$g")), "AKE");
  for (const char* wrong : {"y", "K E", "a", "KEA\n"})
    EXPECT_FALSE(ParseKeyEvents(wrong).has_value()) << wrong;
  KeyspaceEvents events(nullptr, *ParseKeyEvents("A"));
  EXPECT_FALSE(events.Tells(kStringEvent));  // there is no channel to tell it on
  events.Set(*ParseKeyEvents("E$"));
  EXPECT_TRUE(events.Tells(kStringEvent));
  EXPECT_FALSE(events.Tells(kGenericEvent));
}

TEST(KeyspaceEventsTest, NothingIsToldUnlessAskedFor) {
  TestServer server;
  const std::unique_ptr<Client> client = server.Connect();
  EventLog log(server.port());
  Ask(*client, {"SET", "k", "1"});
  EXPECT_EQ(log.Take(*client), Events{});
  EXPECT_EQ(Ask(*client, {"CONFIG", "GET", "notify-keyspace-events"}), "(notify-keyspace-events )");
  EXPECT_EQ(Ask(*client, {"CONFIG", "SET", "notify-keyspace-events", "KE$"}), "OK");
  EXPECT_EQ(Ask(*client, {"CONFIG", "GET", "notify-keyspace-events"}),
            "(notify-keyspace-events $KE)");
  Ask(*client, {"SET", "k", "1"});
  Ask(*client, {"DEL", "k"});
  EXPECT_EQ(log.Take(*client), (Events{"__keyspace@0__:k set", "__keyevent@0__:set k"}));
  EXPECT_EQ(Ask(*client, {"CONFIG", "SET", "notify-keyspace-events", ""}), "OK");
  Ask(*client, {"SET", "k", "1"});
  EXPECT_EQ(log.Take(*client), Events{});
}

TEST(KeyspaceEventsTest, PipelinedWritesAndReadsAreToldEach) {
  TestServer server(Telling("KA"));
  const std::unique_ptr<Client> client = server.Connect();
  EventLog log(server.port());
  Events expected;
  for (const char* letters : {"KA", "KAmn"}) {
    Ask(*client, {"CONFIG", "SET", "notify-keyspace-events", letters});
    const bool all = std::string(letters) == "KAmn";
    Ask(*client, {"FLUSHALL"});
    expected.clear();
    constexpr int kKeys = 100;
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = std::to_string(i);
      ASSERT_TRUE(client->Send({"SET", key, "1"}).ok());
      if (all) expected.push_back("__keyspace@0__:" + key + " new");
      expected.push_back("__keyspace@0__:" + key + " set");
    }
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "missing" + std::to_string(i);
      ASSERT_TRUE(client->Send({"GET", key}).ok());
      if (all) expected.push_back("__keyspace@0__:" + key + " keymiss");
    }
    for (int i = 0; i < 2 * kKeys; ++i) ASSERT_TRUE(client->Receive().ok());
    EXPECT_EQ(log.Take(*client), expected);
  }
}

// Writes of several connections may be committed together.
TEST(KeyspaceEventsTest, WritesOfManyClientsAreToldEach) {
  ServerOptions options = Telling("E$");
  options.io_threads = 1;
  TestServer server(options);
  EventLog log(server.port());
  constexpr int kClients = 8, kEach = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&server, i] {
      const std::unique_ptr<Client> client = server.Connect();
      for (int n = 0; n < kEach; ++n) {
        EXPECT_TRUE(client->Put(std::to_string(i) + ":" + std::to_string(n), "1").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Events told = log.Take(*server.Connect());
  Events expected;
  for (int i = 0; i < kClients; ++i) {
    for (int n = 0; n < kEach; ++n) {
      expected.push_back("__keyevent@0__:set " + std::to_string(i) + ":" + std::to_string(n));
    }
  }
  std::sort(told.begin(), told.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(told, expected);
}

TEST(KeyspaceEventsTest, DatabasesAndNamespacesHaveChannelsOfTheirOwn) {
  TestServer server(Telling("EA"));
  const std::unique_ptr<Client> client = server.Connect();
  EventLog log(server.port());
  Ask(*client, {"SELECT", "3"});
  Ask(*client, {"SET", "k", "1"});
  Ask(*client, {"MOVE", "k", "5"});
  Ask(*client, {"NAMESPACE", "CREATE", "users"});
  Ask(*client, {"NAMESPACE", "USE", "users"});
  Ask(*client, {"SET", "k", "1"});
  Ask(*client, {"DELRANGE", "-", "+"});
  Ask(*client, {"NAMESPACE", "DROP", "users"});
  Ask(*client, {"SELECT", "0"});
  EXPECT_EQ(log.Take(*client), (Events{"__keyevent@3__:set k", "__keyevent@3__:move_from k",
                                       "__keyevent@5__:move_to k", "__keyevent@65536__:set k"}));
}

TEST(KeyspaceEventsTest, ATransactionTellsWhatItHasCommitted) {
  TestServer server(Telling("EAm"));
  const std::unique_ptr<Client> client = server.Connect();
  const std::unique_ptr<Client> other = server.Connect();
  EventLog log(server.port());
  Ask(*client, {"WATCH", "w"});
  Ask(*client, {"MULTI"});
  Ask(*client, {"SET", "a", "1"});
  Ask(*client, {"GET", "missing"});
  Ask(*client, {"DEL", "a"});
  EXPECT_EQ(log.Take(*other), Events{});
  EXPECT_EQ(Ask(*client, {"EXEC"}), "(OK nil 1)");
  EXPECT_EQ(log.Take(*client), (Events{"__keyevent@0__:set a", "__keyevent@0__:keymiss missing",
                                       "__keyevent@0__:del a"}));
  Ask(*client, {"WATCH", "w"});
  Ask(*other, {"SET", "w", "1"});
  Ask(*client, {"MULTI"});
  Ask(*client, {"SET", "a", "1"});
  EXPECT_EQ(Ask(*client, {"EXEC"}), "nil");
  EXPECT_EQ(log.Take(*client), Events{"__keyevent@0__:set w"});
}

TEST(KeyspaceEventsTest, WhatExpiresIsToldOnce) {
  testing::ManualClock clock;
  EngineOptions engine = TestServer::SmallEngine();
  engine.clock = &clock;
  TestServer server(Telling("Ex"), engine);
  const std::unique_ptr<Client> client = server.Connect();
  EventLog log(server.port());
  Ask(*client, {"SET", "a", "1", "PX", "1000"});
  Ask(*client, {"SELECT", "2"});
  Ask(*client, {"SET", "b", "1", "PX", "1000"});
  Ask(*client, {"SELECT", "0"});
  clock.Advance(1000);
  // Removed here if the sweep has not been there.
  EXPECT_EQ(Ask(*client, {"WATCH", "a"}), "OK");
  EXPECT_EQ(Ask(*client, {"DBSIZE"}), "0");
  Events told = log.Take(*client);
  std::sort(told.begin(), told.end());
  EXPECT_EQ(told, (Events{"__keyevent@0__:expired a", "__keyevent@2__:expired b"}));
  Ask(*client, {"SET", "refreshed", "1", "PX", "1000"});
  for (const char* left : {"1100", "1200", "1300"}) Ask(*client, {"PEXPIRE", "refreshed", left});
  clock.Advance(2000);
  EXPECT_EQ(Ask(*client, {"DBSIZE"}), "0");
  EXPECT_EQ(log.Take(*client), Events{"__keyevent@0__:expired refreshed"});
  Ask(*client, {"SET", "gone", "1", "PX", "1000"});
  Ask(*client, {"DEL", "gone"});
  clock.Advance(1000);
  EXPECT_EQ(Ask(*client, {"DBSIZE"}), "0");
  EXPECT_EQ(log.Take(*client), Events{});
}

TEST(KeyspaceEventsTest, ALongKeyHasNoChannel) {
  TestServer server(Telling("KE$"));
  const std::unique_ptr<Client> client = server.Connect();
  EventLog log(server.port());
  const std::string longest(PubSub::kMaxChannelName - std::string("__keyspace@0__:").size(), 'k');
  Ask(*client, {"SET", longest, "1"});
  EXPECT_EQ(log.Take(*client),
            (Events{"__keyspace@0__:" + longest + " set", "__keyevent@0__:set " + longest}));
  Ask(*client, {"SET", longest + "k", "1"});
  EXPECT_EQ(log.Take(*client), (Events{"__keyevent@0__:set " + longest + "k"}));
}

TEST(KeyspaceEventsTest, WaitForTheDiskAsRepliesDo) {
  testing::FaultFileSystem files;
  EngineOptions engine = TestServer::SmallEngine();
  engine.file_system = &files;
  ServerOptions options = Telling("E$");
  // So that the thread of the one who listens doesn't wait for the disk.
  options.execution = Execution::kPool;
  options.io_threads = 2;
  TestServer server(options, engine);
  const std::unique_ptr<Client> client = server.Connect();
  EventLog log(server.port());
  std::string told;
  std::atomic<bool> heard{false};
  std::thread listening([&] {
    told = log.Next();
    heard = true;
  });
  files.StandStill([&] {
    EXPECT_TRUE(client->Send({"SET", "k", "1"}).ok());
    client->pipeline().Flush();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_FALSE(heard);
  });
  listening.join();
  EXPECT_EQ(told, "__keyevent@0__:set k");
}

}  // namespace
}  // namespace varve
