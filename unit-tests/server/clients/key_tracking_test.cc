// CLIENT TRACKING: what is told to whom, and when.
#include "server/clients/key_tracking.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/caching_client.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve {
namespace {

using testing::Ask;
using testing::CachingClient;
using testing::ManualClock;
using testing::RawConnection;
using testing::TestServer;
using Pushes = CachingClient::Pushes;
using Words = std::vector<std::string>;

constexpr const char* kAny = "(invalidate nil)";

class KeyTrackingTest : public ::testing::Test {
 protected:
  std::string Write(const Words& arguments) { return Ask(*writer_, arguments); }
  std::string Info(const std::string& field) {
    const std::string info = Write({"INFO", "everything"});
    const size_t at = info.find(field + ":") + field.size() + 1;
    return info.substr(at, info.find('\r', at) - at);
  }
  // Waits until the server has noticed that connections have gone.
  void AwaitClients(size_t count) {
    while (server_.state().clients.connected.load() != count) std::this_thread::yield();
  }

  TestServer server_;
  const std::unique_ptr<Client> writer_ = server_.Connect();
};

TEST_F(KeyTrackingTest, AKeyThatWasReadIsToldOnce) {
  CachingClient cache(server_.port());
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "ON"}), "OK");
  Write({"SET", "k", "1"});
  EXPECT_EQ(cache.Take(), Pushes{}) << "it was not read";
  EXPECT_EQ(cache.Do({"GET", "k"}), "1");
  Write({"SET", "other", "1"});
  EXPECT_EQ(cache.Take(), Pushes{});
  Write({"SET", "k", "2"});
  Write({"SET", "k", "3"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"});
  EXPECT_EQ(cache.Do({"MGET", "k", "missing"}), "(3 nil)");
  Write({"MSET", "k", "4", "missing", "1"});
  EXPECT_EQ(cache.Take(), (Pushes{"(invalidate (k))", "(invalidate (missing))"}));
  cache.Do({"GET", "k"});
  EXPECT_EQ(cache.Do({"SET", "k", "own"}), "OK");
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"}) << "its own write";
  cache.Do({"GET", "k"});
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "OFF"}), "OK");
  Write({"SET", "k", "5"});
  EXPECT_EQ(cache.Take(), Pushes{});
}

// Each line: what is there before, and the write that changes the key "k".
TEST_F(KeyTrackingTest, EveryWayToWriteIsTold) {
  Write({"SET", "k", "5"});
  const std::string dump = Write({"DUMP", "k"});
  const std::vector<Words> writes = {{"SET", "k", "6"},
                                     {"SET", "k", "6", "EX", "1000"},
                                     {"SETEX", "k", "1000", "6"},
                                     {"PSETEX", "k", "100000", "6"},
                                     {"GETSET", "k", "6"},
                                     {"APPEND", "k", "6"},
                                     {"INCR", "k"},
                                     {"DECRBY", "k", "2"},
                                     {"INCRBYFLOAT", "k", "1.5"},
                                     {"SETRANGE", "k", "3", "x"},
                                     {"SETBIT", "k", "6", "1"},
                                     {"BITOP", "NOT", "k", "source"},
                                     {"BITFIELD", "k", "SET", "u8", "0", "77"},
                                     {"EXPIRE", "k", "1000"},
                                     {"PEXPIREAT", "k", "99999999999999"},
                                     {"GETEX", "k", "EX", "1000"},
                                     {"DEL", "k"},
                                     {"UNLINK", "k"},
                                     {"GETDEL", "k"},
                                     {"RENAME", "source", "k"},
                                     {"RENAME", "k", "new"},
                                     {"COPY", "source", "k", "REPLACE"},
                                     {"RESTORE", "k", "0", dump, "REPLACE"},
                                     {"MOVE", "k", "1"},
                                     {"MSET", "a", "1", "k", "2"},
                                     {"DELRANGE", "[k", "(l"},
                                     {"DELRANGE", "-", "+"},
                                     {"SET", "k", "6", "XX", "GET"},
                                     {"DELEX", "k", "IFEQ", "5"}};
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  CachingClient prefix(server_.port());
  prefix.Do({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k"});
  for (const bool in_transaction : {false, true}) {
    for (const Words& write : writes) {
      SCOPED_TRACE(write[0] + (in_transaction ? " in EXEC" : ""));
      Write({"SELECT", "1"});
      Write({"FLUSHDB"});
      Write({"SELECT", "0"});
      Write({"MSET", "k", "5", "source", "8"});
      cache.Take();
      prefix.Take();
      EXPECT_EQ(cache.Do({"GET", "k"}), "5");
      if (in_transaction) Write({"MULTI"});
      EXPECT_FALSE(Write(write).starts_with("!"));
      if (in_transaction) Write({"EXEC"});
      EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"});
      const std::string expected = write[0] == "DELRANGE" ? kAny : "(invalidate (k))";
      EXPECT_EQ(prefix.Take(), Pushes{expected});
    }
  }
}

TEST_F(KeyTrackingTest, AWriteThatChangesNothingIsNotTold) {
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  Write({"SET", "k", "1"});
  cache.Do({"MGET", "k", "missing"});
  Write({"SETNX", "k", "2"});
  Write({"SET", "missing", "2", "XX"});
  Write({"INCR", "text"});
  Write({"MULTI"});
  Write({"SET", "k", "2"});
  Write({"DISCARD"});
  Write({"RENAME", "missing", "k"});
  EXPECT_EQ(cache.Take(), Pushes{});
}

TEST_F(KeyTrackingTest, WhatEmptiesAWholeDatabaseTellsThatAnyKeyMayHaveChanged) {
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  CachingClient prefix(server_.port());
  prefix.Do({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k"});
  for (const Words& write :
       std::vector<Words>{{"FLUSHDB"}, {"FLUSHALL"}, {"SWAPDB", "0", "1"}, {"SWAPDB", "1", "0"}}) {
    cache.Do({"GET", "k"});
    EXPECT_EQ(Write(write), "OK");
    const Pushes pushes = cache.Take();
    ASSERT_FALSE(pushes.empty()) << write[0];
    for (const std::string& push : pushes) EXPECT_EQ(push, kAny) << write[0];
    EXPECT_EQ(prefix.Take(), pushes) << write[0];
  }
  cache.Do({"GET", "k"});
  Write({"MULTI"});
  Write({"FLUSHDB"});
  Write({"SET", "k", "1"});
  Write({"EXEC"});
  EXPECT_EQ(cache.Take(), Pushes{kAny});
}

TEST_F(KeyTrackingTest, ARangeOfManyTrackedKeysTellsThatAnyMayHaveChanged) {
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  Words keys{"MGET"};
  for (size_t i = 0; i <= KeyTracking::kMostKeysOfRange; ++i) keys.push_back(std::to_string(i));
  cache.Do(keys);
  Write({"DELRANGE", "[1", "(2"});
  const size_t some = cache.Take().size();
  EXPECT_GT(some, 100u);
  EXPECT_LT(some, KeyTracking::kMostKeysOfRange);
  cache.Do(keys);
  Write({"DELRANGE", "-", "+"});
  EXPECT_EQ(cache.Take(), Pushes{kAny});
}

TEST_F(KeyTrackingTest, DatabasesAndNamespacesAreApart) {
  CachingClient cache(server_.port());
  CachingClient prefix(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  prefix.Do({"CLIENT", "TRACKING", "ON", "BCAST"});
  cache.Do({"GET", "k"});
  for (const Words& place : std::vector<Words>{
           {"SELECT", "3"}, {"NAMESPACE", "CREATE", "app"}, {"NAMESPACE", "USE", "app"}})
    EXPECT_EQ(Write(place), "OK");
  Write({"SET", "k", "1"});
  Write({"FLUSHDB"});
  EXPECT_EQ(cache.Take(), Pushes{});
  EXPECT_EQ(prefix.Take(), Pushes{});
  for (CachingClient* client : {&cache, &prefix}) {
    client->Do({"NAMESPACE", "USE", "app"});
    client->Do({"GET", "k"});
    client->Do({"SELECT", "0"});
  }
  Write({"SET", "k", "1"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"});
  EXPECT_EQ(prefix.Take(), Pushes{"(invalidate (k))"});
  Write({"NAMESPACE", "USE", "app"});
  EXPECT_EQ(Write({"SELECT", "0"}), "OK");
  EXPECT_EQ(Write({"NAMESPACE", "DROP", "app"}), "OK");
  EXPECT_EQ(cache.Take(), Pushes{kAny});
  EXPECT_EQ(prefix.Take(), Pushes{kAny});
}

TEST_F(KeyTrackingTest, OptInAndOptOutHoldForOneRequestOrTransaction) {
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON", "OPTIN"});
  const auto changed = [&] {
    Write({"MSET", "a", "1", "b", "1", "c", "1"});
    std::string keys;
    for (const std::string& push : cache.Take()) keys += push;
    return keys;
  };
  cache.Do({"GET", "a"});
  EXPECT_EQ(changed(), "");
  EXPECT_EQ(cache.Do({"CLIENT", "CACHING", "YES"}), "OK");
  EXPECT_EQ(cache.Do({"CLIENT", "GETNAME"}), "nil") << "CLIENT is not the next command";
  cache.Do({"GET", "a"});
  cache.Do({"GET", "b"});
  EXPECT_EQ(changed(), "(invalidate (a))");
  for (const Words& request : std::vector<Words>{
           {"CLIENT", "CACHING", "YES"}, {"MULTI"}, {"GET", "a"}, {"GET", "b"}, {"EXEC"}})
    cache.Do(request);
  cache.Do({"GET", "c"});
  EXPECT_EQ(changed(), "(invalidate (a))(invalidate (b))");
  for (const Words& request :
       std::vector<Words>{{"MULTI"}, {"CLIENT", "CACHING", "YES"}, {"GET", "a"}, {"EXEC"}})
    cache.Do(request);
  EXPECT_EQ(changed(), "(invalidate (a))");
  cache.Do({"CLIENT", "TRACKING", "OFF"});
  cache.Do({"CLIENT", "TRACKING", "ON", "OPTOUT"});
  cache.Do({"GET", "a"});
  cache.Do({"CLIENT", "CACHING", "NO"});
  cache.Do({"GET", "b"});
  cache.Do({"GET", "c"});
  EXPECT_EQ(changed(), "(invalidate (a))(invalidate (c))");
  cache.Do({"CLIENT", "CACHING", "NO"});
  EXPECT_TRUE(cache.Do({"GET"}).starts_with("!")) << "also a wrong one is the next";
  cache.Do({"GET", "b"});
  EXPECT_EQ(changed(), "(invalidate (b))");
}

TEST_F(KeyTrackingTest, ATransactionIsTracked) {
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  for (const Words& request :
       std::vector<Words>{{"MULTI"}, {"GET", "a"}, {"SELECT", "2"}, {"GET", "b"}, {"EXEC"}})
    cache.Do(request);
  EXPECT_EQ(cache.Take(), Pushes{kAny}) << "what it read elsewhere was not noted before";
  Write({"SET", "a", "1"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (a))"});
  for (const Words& request : std::vector<Words>{{"CLIENT", "TRACKING", "OFF"},
                                                 {"MULTI"},
                                                 {"CLIENT", "TRACKING", "ON"},
                                                 {"GET", "a"},
                                                 {"EXEC"}})
    cache.Do(request);
  EXPECT_EQ(cache.Take(), Pushes{kAny});
}

TEST_F(KeyTrackingTest, PrefixesAreTold) {
  CachingClient cache(server_.port());
  const Words on{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX"};
  const auto add = [&](std::string prefix) {
    Words request = on;
    request.push_back(std::move(prefix));
    return cache.Do(request);
  };
  EXPECT_EQ(add("user:"), "OK");
  EXPECT_EQ(add("car:"), "OK");
  EXPECT_EQ(add("car:1"),
            "!ERR Prefix 'car:1' overlaps with an existing prefix 'car:'. Prefixes for a single "
            "client must not overlap.");
  EXPECT_EQ(add(""),
            "!ERR Prefix '' overlaps with an existing prefix 'car:'. Prefixes for a single client "
            "must not overlap.");
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "x", "PREFIX", "xy"}),
            "!ERR Prefix 'x' overlaps with another provided prefix 'xy'. Prefixes for a single "
            "client must not overlap.");
  Write({"MSET", "user:1", "a", "user:2", "b", "car:7", "c", "bike", "d"});
  EXPECT_EQ(cache.Take(), (Pushes{"(invalidate (car:7))", "(invalidate (user:1 user:2))"}));
  Write({"SET", "user:1", "a"});
  Write({"SET", "user:1", "a"});
  EXPECT_EQ(cache.Take(), (Pushes{"(invalidate (user:1))", "(invalidate (user:1))"}));
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKINGINFO"}),
            "(flags (on bcast) redirect 0 prefixes (car: user:))");
  EXPECT_EQ(Info("tracking_total_prefixes"), "2");
  cache.Do({"CLIENT", "TRACKING", "OFF"});
  EXPECT_EQ(Info("tracking_total_prefixes"), "0");
}

TEST_F(KeyTrackingTest, NoLoopLeavesOutOwnWritesAndNothingElse) {
  for (const bool broadcast : {false, true}) {
    CachingClient cache(server_.port());
    Words on{"CLIENT", "TRACKING", "ON", "NOLOOP"};
    if (broadcast) on.push_back("BCAST");
    cache.Do(on);
    CachingClient other(server_.port());
    other.Do({"CLIENT", "TRACKING", "ON"});
    other.Do({"GET", "k"});
    cache.Do({"GET", "k"});
    cache.Do({"SET", "k", "own"});
    EXPECT_EQ(cache.Take(), Pushes{});
    EXPECT_EQ(other.Take(), Pushes{"(invalidate (k))"});
    Write({"SET", "k", "other"});
    EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"}) << "it may keep what it wrote";
    cache.Do({"GET", "k"});
    cache.Do({"MULTI"});
    cache.Do({"INCR", "n"});
    cache.Do({"SET", "k", "own"});
    cache.Do({"EXEC"});
    EXPECT_EQ(cache.Take(), Pushes{});
  }
}

TEST_F(KeyTrackingTest, ARedirectionGoesToAChannelInRESP2) {
  RawConnection target(server_.port());
  target.Send("CLIENT ID\r\n");
  std::string id = target.Receive(4);  // ":n\r\n"; ids are small here
  id = id.substr(1, id.find('\r') - 1);
  target.Send("SUBSCRIBE __redis__:invalidate\r\n");
  const std::string confirmed = "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n";
  EXPECT_EQ(target.Receive(confirmed.size()), confirmed);
  Ask(*writer_, {"CLIENT", "TRACKING", "ON", "REDIRECT", id});
  EXPECT_EQ(Write({"CLIENT", "GETREDIR"}), id);
  Write({"GET", "k"});
  const std::unique_ptr<Client> other = server_.Connect();
  Ask(*other, {"SET", "k", "1"});
  const std::string head = "*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n";
  const std::string first = head + "*1\r\n$1\r\nk\r\n";
  EXPECT_EQ(target.Receive(first.size()), first);
  Ask(*other, {"FLUSHALL"});
  const std::string second = head + "*-1\r\n";
  EXPECT_EQ(target.Receive(second.size()), second);
  EXPECT_NE(Write({"CLIENT", "INFO"}).find("flags=t "), std::string::npos);
  EXPECT_NE(Write({"CLIENT", "INFO"}).find("redir=" + id + " "), std::string::npos);
}

TEST_F(KeyTrackingTest, ALostRedirectionIsToldAndShown) {
  CachingClient cache(server_.port());
  auto target = std::make_unique<CachingClient>(server_.port());
  const std::string id = target->id();
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "ON", "REDIRECT", "987654"}),
            "!ERR The client ID you want redirect to does not exist");
  cache.Do({"CLIENT", "TRACKING", "ON", "REDIRECT", id});
  cache.Do({"GET", "k"});
  Write({"SET", "k", "1"});
  EXPECT_EQ(target->Take(), Pushes{"(invalidate (k))"});
  target.reset();
  AwaitClients(2);
  Write({"SET", "k", "2"});
  EXPECT_EQ(cache.Take(), Pushes{"(tracking-redir-broken " + id + ")"});
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKINGINFO"}),
            "(flags (on broken_redirect) redirect " + id + " prefixes ())");
  EXPECT_NE(cache.Do({"CLIENT", "INFO"}).find("flags=tR "), std::string::npos);
  cache.Do({"CLIENT", "TRACKING", "ON"});
  cache.Do({"GET", "k"});
  Write({"SET", "k", "3"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"});
}

TEST_F(KeyTrackingTest, ModesThatContradictAreRefusedWithRedisWords) {
  CachingClient cache(server_.port());
  const auto on = [&](Words options) {
    Words request{"CLIENT", "TRACKING", "ON"};
    request.insert(request.end(), options.begin(), options.end());
    return cache.Do(request);
  };
  EXPECT_EQ(on({"PREFIX", "a"}), "!ERR PREFIX option requires BCAST mode to be enabled");
  EXPECT_EQ(on({"BCAST", "OPTIN"}), "!ERR OPTIN and OPTOUT are not compatible with BCAST");
  EXPECT_EQ(on({"OPTOUT", "OPTIN"}), "!ERR You can't specify both OPTIN mode and OPTOUT mode");
  EXPECT_EQ(on({"NONSENSE"}), "!ERR syntax error");
  EXPECT_EQ(on({"REDIRECT", "x"}), "!ERR value is not an integer or out of range");
  EXPECT_EQ(on({"OPTIN"}), "OK");
  EXPECT_TRUE(on({"OPTOUT"}).starts_with("!ERR You can't switch OPTIN/OPTOUT mode before"));
  EXPECT_TRUE(on({"BCAST"}).starts_with("!ERR You can't switch BCAST mode on/off before"));
  EXPECT_EQ(cache.Do({"CLIENT", "CACHING", "NO"}),
            "!ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  EXPECT_EQ(cache.Do({"CLIENT", "CACHING", "YES"}), "OK");
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKINGINFO"}),
            "(flags (on optin caching-yes) redirect 0 prefixes ())");
  EXPECT_EQ(cache.Do({"RESET"}), "RESET");
  EXPECT_EQ(Info("tracking_clients"), "0");
}

TEST_F(KeyTrackingTest, NothingIsSentInRESP2) {
  CachingClient cache(server_.port(), 2);
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "ON"}), "OK");
  cache.Do({"GET", "k"});
  Write({"SET", "k", "1"});
  EXPECT_EQ(cache.Take(), Pushes{});
  EXPECT_EQ(cache.Do({"GET", "k"}), "1");
  EXPECT_EQ(Info("tracking_clients"), "1");
  EXPECT_EQ(Info("tracking_total_keys"), "1");
  EXPECT_EQ(Info("tracking_total_items"), "1");
}

// The limits of a table are those of all its keys.
TEST_F(KeyTrackingTest, AFullTableTellsOfTheKeysThatLeaveIt) {
  Write({"CONFIG", "SET", "tracking-table-max-keys", "3"});
  CachingClient cache(server_.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  cache.Do({"MGET", "a", "b", "c"});
  EXPECT_EQ(cache.Take(), Pushes{});
  cache.Do({"GET", "d"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (a))"});
  cache.Do({"GET", "e"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (b))"});
  EXPECT_EQ(Info("tracking_total_keys"), "3");
  Write({"CONFIG", "SET", "tracking-table-max-keys", "1"});
  cache.Do({"GET", "e"});
  EXPECT_EQ(cache.Take().size(), 2u);
  EXPECT_EQ(Info("tracking_total_keys"), "1");
}

TEST_F(KeyTrackingTest, WhoIsNotThereAnyMoreLeavesNothing) {
  {
    CachingClient cache(server_.port());
    cache.Do({"CLIENT", "TRACKING", "ON"});
    cache.Do({"GET", "k"});
    CachingClient prefix(server_.port());
    prefix.Do({"CLIENT", "TRACKING", "ON", "BCAST"});
    EXPECT_EQ(Info("tracking_clients"), "2");
  }
  AwaitClients(1);
  EXPECT_EQ(Info("tracking_clients"), "0");
  EXPECT_EQ(Info("tracking_total_prefixes"), "0");
  while (Info("tracking_total_keys") != "0") std::this_thread::yield();
}

TEST_F(KeyTrackingTest, BroadcastsNameOnlyKeysThatTheUserMayRead) {
  Write({"ACL", "SETUSER", "app", "on", "nopass", "+@all", "~app:*", "%W~log:*"});
  CachingClient cache(server_.port());
  cache.Do({"AUTH", "app", "any"});
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "ON", "BCAST"}), "OK");
  Write({"MSET", "app:1", "1", "log:1", "1", "secret", "1"});
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (app:1))"});
  Write({"ACL", "SETUSER", "app", "resetkeys", "~other:*"});
  Write({"MSET", "app:1", "1", "other:1", "1"});
  EXPECT_EQ(cache.Take(), (Pushes{kAny, "(invalidate (other:1))"}))
      << "what it could read before may change without its knowing";
  cache.Do({"AUTH", "default", ""});
  cache.Do({"AUTH", "default", "x"});
  Write({"SET", "secret", "1"});
  const Pushes pushes = cache.Take();
  EXPECT_EQ(pushes.back(), "(invalidate (secret))");
}

TEST_F(KeyTrackingTest, ABroadcastIsThatOfANewUserFromItsLoginOn) {
  Write({"ACL", "SETUSER", "app", "on", "nopass", "+@all", "~app:*"});
  CachingClient cache(server_.port());
  EXPECT_EQ(cache.Do({"CLIENT", "TRACKING", "ON", "BCAST"}), "OK");
  EXPECT_EQ(cache.Do({"AUTH", "app", "any"}), "OK");
  Write({"MSET", "app:1", "1", "secret", "1"});
  EXPECT_EQ(cache.Take(), (Pushes{kAny, "(invalidate (app:1))"}))
      << "what it may hold of another user's keys goes first";
  EXPECT_EQ(cache.Do({"AUTH", "default", "any"}), "OK");
  Write({"SET", "secret", "2"});
  EXPECT_EQ(cache.Take(), (Pushes{kAny, "(invalidate (secret))"}));
}

TEST_F(KeyTrackingTest, AClientThatTakesNoMessagesIsClosed) {
  Write({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 64kb 0 0"});
  RawConnection cache(server_.port(), /*receive_buffer=*/4096);
  const std::string hello = "HELLO 3\r\nCLIENT TRACKING ON BCAST\r\n";
  cache.Send(hello);
  while (Info("tracking_clients") != "1") std::this_thread::yield();
  const std::string key(16000, 'k');
  while (Info("tracking_clients") != "0") Write({"SET", key, "1"});
  cache.ReceiveAll();
  EXPECT_TRUE(cache.closed());
}

TEST(KeyTrackingOverTimeTest, AKeyThatExpiresIsTold) {
  ManualClock clock;
  EngineOptions engine = TestServer::SmallEngine();
  engine.clock = &clock;
  TestServer server({}, engine);
  CachingClient cache(server.port());
  CachingClient prefix(server.port());
  const std::unique_ptr<Client> writer = server.Connect();
  cache.Do({"CLIENT", "TRACKING", "ON"});
  prefix.Do({"CLIENT", "TRACKING", "ON", "BCAST"});
  Ask(*writer, {"SET", "k", "1", "PX", "1000"});
  EXPECT_EQ(cache.Do({"GET", "k"}), "1");
  EXPECT_EQ(prefix.Take(), Pushes{"(invalidate (k))"});
  clock.Advance(2000);
  Ask(*writer, {"DBSIZE"});  // removes what has expired
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"});
  EXPECT_EQ(prefix.Take(), Pushes{"(invalidate (k))"});
}

TEST(KeyTrackingOverTimeTest, AReaderThatFindsAKeyExpiredTellsTheOthers) {
  ManualClock clock;
  EngineOptions engine = TestServer::SmallEngine();
  engine.clock = &clock;
  TestServer server({}, engine);
  CachingClient cache(server.port()), reader(server.port());
  const std::unique_ptr<Client> writer = server.Connect();
  cache.Do({"CLIENT", "TRACKING", "ON"});
  reader.Do({"CLIENT", "TRACKING", "ON"});
  Ask(*writer, {"SET", "k", "1", "PX", "1000"});
  EXPECT_EQ(cache.Do({"GET", "k"}), "1");
  // The sweep, which would tell of the key as well, removes nothing.
  Ask(*writer, {"CLIENT", "PAUSE", "600000", "WRITE"});
  clock.Advance(2000);
  EXPECT_EQ(reader.Do({"GET", "k"}), "nil");
  EXPECT_EQ(cache.Take(), Pushes{"(invalidate (k))"});
  EXPECT_EQ(reader.Do({"MGET", "k"}), "(nil)");
  EXPECT_EQ(reader.Take(), Pushes{}) << "it knows";
  Ask(*writer, {"CLIENT", "UNPAUSE"});
  Ask(*writer, {"SET", "k", "2"});
  EXPECT_NE(reader.Take(), Pushes{});
}

TEST(KeyTrackingOverTimeTest, WritesOfManyClientsAreToldEach) {
  ServerOptions options;
  options.io_threads = 1;
  TestServer server(options);
  constexpr int kClients = 8, kEach = 50;
  CachingClient cache(server.port());
  cache.Do({"CLIENT", "TRACKING", "ON"});
  Words keys{"MGET"};
  for (int i = 0; i < kClients * kEach; ++i) keys.push_back(std::to_string(i));
  cache.Do(keys);
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&server, i] {
      const std::unique_ptr<Client> client = server.Connect();
      for (int n = 0; n < kEach; ++n) {
        EXPECT_TRUE(client->Put(std::to_string(i * kEach + n), "1").ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.Take().size(), size_t{kClients} * kEach);
}

}  // namespace
}  // namespace varve
