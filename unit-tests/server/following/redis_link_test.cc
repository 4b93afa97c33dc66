// A server that follows a real Redis: the copy, the stream of commands under load, lost
// connections, and what the store cannot take.
#include "server/following/redis_link.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/following/redis_server.h"
#include "unit-tests/server/test_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_certificates.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::RedisServer;
using testing::TestServer;
using Words = std::vector<std::string>;

constexpr int kDatabases = 16;

Words Split(const std::string& command) {
  std::istringstream in(command);
  return {std::istream_iterator<std::string>(in), {}};
}

// In order; blanks separate the words.
constexpr const char* kStringCommands[] = {
    "SET a 1",
    "SET a 2 PX 900000",
    "SET a 3 KEEPTTL GET",
    "SET b 1 NX EX 900",
    "SET b 2 XX",
    "SET gone 1 PXAT 1",
    "SETEX c 900 v",
    "PSETEX d 900000 v",
    "SETNX e v",
    "SETNX e w",
    "GETSET e x",
    "MSET m1 1 m2 2",
    "MSETNX m3 3 m4 4",
    "APPEND m1 tail",
    "SETRANGE m1 10 range",
    "INCR n",
    "INCRBY n 41",
    "DECR n",
    "DECRBY n 7",
    "SET f 3.0e3",
    "INCRBYFLOAT f 0.1",
    "SETBIT bits 100 1",
    "BITFIELD bits SET u8 8 200 INCRBY i5 100 1",
    "BITOP NOT bits2 bits",
    "BITOP XOR bits3 bits bits2",
    "EXPIRE m1 900",
    "PEXPIRE m2 900000 NX",
    "EXPIREAT m3 4000000000",
    "PEXPIREAT m4 4000000000000",
    "PERSIST m1",
    "EXPIRE m2 1000 GT",
    "GETEX m1 EX 900",
    "GETEX m2 PERSIST",
    "SET to-rename v EX 900",
    "RENAME to-rename renamed",
    "SET to-rename v",
    "RENAMENX to-rename renamed",
    "RENAMENX to-rename renamed-too",
    "COPY renamed copied",
    "COPY a copied REPLACE",
    "COPY a copied DB 3",
    "COPY b copied DB 3 REPLACE",
    "SET to-move v",
    "MOVE to-move 4",
    "SET to-delete v",
    "DEL to-delete missing",
    "SET to-unlink v",
    "UNLINK to-unlink",
    "SET to-get-and-delete v",
    "GETDEL to-get-and-delete",
    "SET to-expire-at-once v",
    "EXPIRE to-expire-at-once -1",
    "SWAPDB 3 5",
    "SELECT 9",
    "SET flushed v",
    "FLUSHDB",
    "SET behind-the-flush v",
    "SELECT 0",
    "MULTI",
    "SET in-transaction 1",
    "RENAME in-transaction out-of-transaction",
    "INCR n",
    "SELECT 2",
    "SET in-transaction 2",
    "FLUSHDB",
    "SET in-transaction 3",
    "EXEC",
    "SELECT 0",
};

// What replaces strings by values of other types.
constexpr const char* kReplacingCommands[] = {
    "DEL replaced",
    "LPUSH replaced 1",
    "RPUSH list 2 1",
    "RENAME list renamed",
    "COPY renamed copied REPLACE",
    "SORT renamed STORE sorted",
    "SADD set m",
    "SUNIONSTORE united set",
    "ZADD zset 1 m",
    "ZRANGESTORE ranged zset 0 -1",
    "GEOADD places 8.5 47.4 Zürich",
    "GEOSEARCHSTORE placed places FROMLONLAT 8 47 BYRADIUS 900 km",
    "SELECT 1",
    "SET copied a-string",
    "SELECT 0",
    "COPY renamed copied DB 1 REPLACE",
    "MULTI",
    "SET kept newer",
    "HSET hash f v",
    "RENAME hash moved",
    "EXEC",
    "DEL counted",
    "PFADD counted x",
    "PFADD counted y",
};

struct Held {
  std::string value;
  int64_t expires_at = 0;  // -1: never
  bool operator==(const Held&) const = default;
};
void PrintTo(const Held& held, std::ostream* out) {
  *out << '"' << held.value << "\" until " << held.expires_at;
}
using Contents = std::map<std::string, Held>;  // by database and key

class RedisLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  }

  void StartRedis(std::vector<std::string> arguments = {}, const std::string& password = "") {
    redis_ = std::make_unique<RedisServer>(std::move(arguments));
    client_ = redis_->Connect(password);
    ASSERT_NE(client_, nullptr) << redis_->log();
  }
  void StartServer(ServerOptions options = {}) {
    server_ = std::make_unique<TestServer>(std::move(options));
    varve_ = server_->Connect();
  }
  // No port: the one of the Redis.
  void StartLink(RedisPrimary primary = {.port = 0}) {
    if (server_ == nullptr) StartServer();
    primary.host = "127.0.0.1";
    if (primary.port == 0) primary.port = redis_->port();
    // The state is the server's own; tests otherwise only look at it.
    auto* const state = const_cast<ServerState*>(&server_->state());
    link_ = std::make_unique<RedisLink>(state, std::move(primary));
    ASSERT_TRUE(link_->Start().ok());
  }
  void TearDown() override {
    link_.reset();
    varve_.reset();
  }

  // Returns the reply of the Redis, which must be no error.
  Reply Do(const Words& words) { return Ask(client_.get(), words); }
  static Reply Ask(Client* client, const Words& words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    const absl::StatusOr<Reply> reply = client->Call(views);
    EXPECT_TRUE(reply.ok()) << words[0] << ": " << reply.status();
    return reply.ok() ? *reply : Reply();
  }
  std::string Get(const std::string& key) { return Ask(varve_.get(), {"GET", key}).text; }

  int64_t RedisOffset() {
    const std::string info = Do({"INFO", "replication"}).text;
    const std::string name = "master_repl_offset:";
    const size_t at = info.find(name);
    return at == std::string::npos ? -1 : std::stoll(info.substr(at + name.size()));
  }
  bool CatchesUp() {
    return Eventually([&] {
      const RedisLinkStatus status = link_->Status();
      return status.up && status.offset == RedisOffset();
    });
  }
  bool Syncs(uint64_t full_syncs) {
    return Eventually([&] {
      const RedisLinkStatus status = link_->Status();
      return status.up && status.full_syncs == full_syncs;
    });
  }

  // The strings that are there for another minute at least.
  static Contents ContentsOf(Client* client, int64_t now_ms) {
    Contents contents;
    for (int database = 0; database < kDatabases; ++database) {
      Ask(client, {"SELECT", std::to_string(database)});
      for (const Reply& key : Ask(client, {"KEYS", "*"}).elements) {
        if (Ask(client, {"TYPE", key.text}).text != "string") continue;
        const Reply value = Ask(client, {"GET", key.text});
        const int64_t expires_at = Ask(client, {"PEXPIRETIME", key.text}).integer;
        if (value.is_null() || (expires_at >= 0 && expires_at < now_ms + 60'000)) continue;
        contents[std::to_string(database) + ' ' + key.text] = {value.text, expires_at};
      }
    }
    Ask(client, {"SELECT", "0"});
    return contents;
  }
  void ExpectSame() {
    ASSERT_TRUE(CatchesUp()) << link_->Status().error;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
    const Contents expected = ContentsOf(client_.get(), now_ms);
    EXPECT_EQ(ContentsOf(varve_.get(), now_ms), expected);
    EXPECT_FALSE(expected.empty());
  }

  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Client> varve_;
  std::unique_ptr<RedisLink> link_;
};

// With a file and without one, which are sent in different forms.
class RedisCopyTest : public RedisLinkTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(RedisCopyTest, TakesStringsWithTheirExpiryInPlaceOfWhatTheStoreHeld) {
  StartRedis({"--repl-diskless-sync", GetParam()});
  Do({"SET", "plain", "value"});
  Do({"SET", "number", "-123456"});
  Do({"SET", "empty", ""});
  Do({"SET", "compressible", std::string(100'000, 'c')});
  Do({"SET", std::string("zero\0byte", 9), std::string("a\0b\r\n", 5)});
  Do({"SET", "with expiry", "value", "EX", "1000"});
  Do({"SELECT", "7"});
  Do({"SET", "elsewhere", "value"});
  Do({"SELECT", "0"});
  for (int i = 0; i < 3000; ++i)
    Do({"SET", "key:" + std::to_string(i), std::string(static_cast<size_t>(i), 'v')});
  StartServer();
  Ask(varve_.get(), {"SET", "old", "of before"});
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error << redis_->log();
  ExpectSame();
  const RedisLinkStatus status = link_->Status();
  EXPECT_EQ(status.keys_done, 3007u);
  EXPECT_EQ(status.keys_total, 3007u);
  EXPECT_TRUE(status.skipped.empty());
  EXPECT_EQ(status.replid.size(), 40u);
  EXPECT_TRUE(Ask(varve_.get(), {"GET", "old"}).is_null());
}

INSTANTIATE_TEST_SUITE_P(Forms, RedisCopyTest, ::testing::Values("no", "yes"));

TEST_F(RedisLinkTest, AnEmptyRedisEmptiesTheStore) {
  StartRedis();
  StartServer();
  Ask(varve_.get(), {"SET", "old", "of before"});
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  EXPECT_EQ(Ask(varve_.get(), {"DBSIZE"}).integer, 0);
}

TEST_F(RedisLinkTest, WhatWasBeforeTheCopyIsInTheHistory) {
  StartRedis();
  Do({"SET", "a", "of the Redis"});
  EngineOptions engine = TestServer::SmallEngine();
  engine.history.time_ms = 3'600'000;
  server_ = std::make_unique<TestServer>(ServerOptions(), engine);
  varve_ = server_->Connect();
  Ask(varve_.get(), {"SET", "a", "of before"});
  const int64_t version = Ask(varve_.get(), {"GET", "a", "WITHVERSION"}).elements[1].integer;
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  EXPECT_EQ(Get("a"), "of the Redis");
  EXPECT_EQ(Ask(varve_.get(), {"GET", "a", "AT", std::to_string(version)}).text, "of before");
}

TEST_F(RedisLinkTest, EveryCommandOnStringsArrives) {
  StartRedis();
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  for (const char* command : kStringCommands) Do(Split(command));
  Do({"EVAL", "redis.call('SET','by script','1') redis.call('INCR','by script')", "0"});
  const std::string payload = Do({"DUMP", "m2"}).text;
  Do({"RESTORE", "restored", "900000", payload});
  Do({"RESTORE", "a", "0", payload, "REPLACE"});
  ExpectSame();
  EXPECT_EQ(Get("n"), "35");
  EXPECT_TRUE(link_->Status().skipped.empty()) << link_->Status().skipped.begin()->first;
}

TEST_F(RedisLinkTest, FlushAllArrives) {
  StartRedis();
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  Do({"SET", "a", "1"});
  Do({"FLUSHALL"});
  Do({"SET", "b", "2"});
  ExpectSame();
}

TEST_F(RedisLinkTest, OtherTypesAreCountedAndNamedAndNeverLeaveAnOldString) {
  StartRedis();
  Do({"RPUSH", "in copy:list", "1"});
  Do({"HSET", "in copy:hash", "f", "v"});
  Do({"SADD", "in copy:set", "m"});
  Do({"ZADD", "in copy:zset", "1", "m"});
  Do({"XADD", "in copy:stream", "*", "f", "v"});
  Do({"XGROUP", "CREATE", "in copy:stream", "group", "0"});
  Do({"XREADGROUP", "GROUP", "group", "me", "STREAMS", "in copy:stream", ">"});
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  const std::map<std::string, uint64_t> in_copy = {
      {"list", 1}, {"hash", 1}, {"set", 1}, {"sorted set", 1}, {"stream", 1}};
  EXPECT_EQ(link_->Status().skipped, in_copy);
  for (const char* key : {"replaced", "renamed", "copied", "restored", "sorted", "united", "ranged",
                          "counted", "moved", "placed", "kept"}) {
    Do({"SET", key, "a string"});
  }
  for (const char* command : kReplacingCommands) Do(Split(command));
  Do({"RESTORE", "restored", "0", Do({"DUMP", "moved"}).text, "REPLACE"});
  ASSERT_TRUE(CatchesUp());
  EXPECT_EQ(Get("kept"), "newer");
  EXPECT_EQ(Ask(varve_.get(), {"DBSIZE"}).integer, 1);
  Ask(varve_.get(), {"SELECT", "1"});
  EXPECT_EQ(Ask(varve_.get(), {"DBSIZE"}).integer, 0);
  const RedisLinkStatus status = link_->Status();
  EXPECT_TRUE(status.up);
  EXPECT_EQ(status.skipped.at("hyperloglog"), 2u);
  EXPECT_EQ(status.skipped.at("hash"), 3u);
  const auto has = [&](const std::string& name) {
    return std::find(status.skipped_names.begin(), status.skipped_names.end(), name) !=
           status.skipped_names.end();
  };
  EXPECT_TRUE(has("stream in copy:stream"));
  EXPECT_TRUE(has("list replaced"));
  EXPECT_TRUE(has("set united"));
  EXPECT_TRUE(has("hash restored"));
}

// Writes until it is stopped, some of it in ways that can't be done twice.
class Writer {
 public:
  Writer(std::unique_ptr<Client> client, int number)
      : client_(std::move(client)), thread_([this, number] { Write(number); }) {}
  ~Writer() { Stop(); }
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint64_t rounds() const { return rounds_; }

 private:
  void Write(int number) {
    const std::string own = "w" + std::to_string(number) + ":";
    for (uint64_t i = 0; !stop_; rounds_ = ++i) {
      const std::string key = own + std::to_string(i * 7919 % 500);
      const std::string text = std::to_string(i);
      Do({"INCR", "shared"});
      Do({"INCRBY", own + "counter", text});
      Do({"SET", key, text});
      Do({"SET", key + ":brief", text, "PX", "150"});
      Do({"SET", key + ":long", text, "PX", "900000"});
      Do({"APPEND", own + "log" + std::to_string(i % 10), text});
      if (i % 5 == 0) Do({"RENAME", key, key + ":renamed"});
      if (i % 7 == 0) Do({"RPUSH", own + "list", text});
      if (i % 50 == 0) {
        Do({"SELECT", "1"});
        if (i % 100 == 0) Do({"FLUSHDB"});
        Do({"SET", key, text});
        Do({"SELECT", "0"});
      }
      for (const Words& words : {Words{"MULTI"}, Words{"INCR", own + "one"},
                                 Words{"DECR", own + "other"}, Words{"EXEC"}}) {
        Do(words);
      }
    }
  }
  void Do(const Words& words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    const absl::StatusOr<Reply> reply = client_->Call(views);
    EXPECT_TRUE(reply.ok()) << words[0] << ": " << reply.status();
  }

  const std::unique_ptr<Client> client_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> rounds_{0};
  std::thread thread_;
};

TEST_F(RedisLinkTest, FollowsUnderLoadAndGoesOnAfterLostConnections) {
  StartRedis({"--repl-backlog-size", "64mb"});
  for (int i = 0; i < 20'000; i += 4) {
    const std::string key = "copied:" + std::to_string(i);
    Do({"MSET", key, "1", key + "b", "2", key + "c", "3", key + "d", "4"});
  }
  Writer one(redis_->Connect(), 1);
  Writer other(redis_->Connect(), 2);
  ASSERT_TRUE(Eventually([&] { return one.rounds() > 100 && other.rounds() > 100; }));
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  for (uint64_t lost = 1; lost <= 3; ++lost) {
    const uint64_t rounds = one.rounds();
    ASSERT_TRUE(Eventually([&] { return one.rounds() > rounds + 100; }));
    EXPECT_EQ(Do({"CLIENT", "KILL", "TYPE", "replica"}).integer, 1);
    ASSERT_TRUE(Eventually([&] { return link_->Status().partial_syncs == lost; }))
        << link_->Status().error;
  }
  one.Stop();
  other.Stop();
  ExpectSame();
  const RedisLinkStatus status = link_->Status();
  EXPECT_EQ(status.full_syncs, 1u);
  EXPECT_EQ(status.partial_syncs, 3u);
  EXPECT_GT(status.skipped.at("list"), 0u);
}

// Plays a Redis that ends its connections at given bytes: one connection for each script.
class ScriptedRedis {
 public:
  // What is answered to PSYNC, and all that follows.
  explicit ScriptedRedis(std::vector<std::string> scripts)
      : listener_(::socket(AF_INET, SOCK_STREAM, 0)), scripts_(std::move(scripts)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (const std::string& script : scripts_) Serve(script);
    });
  }
  ~ScriptedRedis() {
    thread_.join();
    ::close(listener_);
  }
  uint16_t port() const { return port_; }
  // What was asked for with PSYNC, in turn. Requires: Finish() was called.
  const std::vector<std::string>& asked() const { return asked_; }
  // Lets the last connection end.
  void Finish() { finish_ = true; }

 private:
  void Serve(const std::string& script) {
    const int peer = ::accept(listener_, nullptr, nullptr);
    std::string received;
    char buffer[4096];
    bool is_last = &script == &scripts_.back();
    while (true) {
      const ssize_t got = ::recv(peer, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      received.append(buffer, static_cast<size_t>(got));
      if (received.find("PSYNC") == std::string::npos) {
        Send(peer, "+OK\r\n");
        received.clear();
        continue;
      }
      asked_.push_back(received.substr(received.find("PSYNC")));
      Send(peer, script);
      while (is_last && !finish_) std::this_thread::yield();
      break;
    }
    ::shutdown(peer, SHUT_WR);
    while (::recv(peer, buffer, sizeof(buffer), 0) > 0) continue;
    ::close(peer);
  }
  static void Send(int peer, const std::string& bytes) {
    EXPECT_EQ(::send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  const int listener_;
  const std::vector<std::string> scripts_;
  uint16_t port_ = 0;
  std::atomic<bool> finish_{false};
  std::vector<std::string> asked_;
  std::thread thread_;
};

// The beginning of a full synchronization with a copy in the form of this RDB.
std::string FullSync(const std::string& rdb) {
  return "+FULLRESYNC " + std::string(40, 'a') + " 1000\r\n$" + std::to_string(rdb.size()) +
         "\r\n" + rdb;
}
// Without a checksum.
std::string Rdb(const std::string& items) {
  return "REDIS0010" + items + '\xFF' + std::string(8, '\0');
}

TEST_F(RedisLinkTest, ACopyThatIsCutOrDamagedChangesNothing) {
  const std::string whole = FullSync(Rdb(std::string("\0\1k\1v", 5)));
  std::string damaged = whole;
  damaged[whole.size() - 14] = '\x1C';  // the type of the key
  StartServer();
  Ask(varve_.get(), {"SET", "own", "kept"});
  Ask(varve_.get(), {"NAMESPACE", "CREATE", "redis-copy-0"});  // as a killed server leaves it
  ScriptedRedis redis({whole.substr(0, whole.size() - 9), damaged, whole});
  StartLink({.port = redis.port()});
  const auto fails_with = [&](const std::string& error) {
    return Eventually([&] { return link_->Status().error.find(error) != std::string::npos; });
  };
  ASSERT_TRUE(fails_with("closed the connection")) << link_->Status().error;
  EXPECT_EQ(Get("own"), "kept");
  ASSERT_TRUE(fails_with("type or opcode 28")) << link_->Status().error;
  EXPECT_EQ(Get("own"), "kept");
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  EXPECT_EQ(Get("k"), "v");
  EXPECT_EQ(Ask(varve_.get(), {"DBSIZE"}).integer, 1);
  EXPECT_TRUE(Ask(varve_.get(), {"NAMESPACE", "LIST"}).elements.empty());
  link_->Stop();
  redis.Finish();
}

// Commands on keys whose time is over here, and, behind them, commands of Redis 8.4 and of Valkey.
constexpr const char* kLateCommands[] = {
    "SELECT 0",
    "PEXPIREAT a 4000000000000",
    "INCR b",
    "PERSIST b",
    "DEL c",
    "PEXPIREAT c 4000000000000",
    "MULTI",
    "APPEND d 7",
    "PEXPIREAT d 1",
    "PERSIST d",
    "EXEC",
    "SET e 8 PXAT 1",
    "RENAME e f",
    "PERSIST f",
    "MSETEX 2 h 1 i 2 NX PXAT 4000000000000",
    "SET j 1",
    "DELIFEQ j 1",
    "SET end 1",
};

TEST_F(RedisLinkTest, AKeyWhoseTimeIsOverIsGoneWhenTheRedisSaysSo) {
  const std::string late("\xFC\1\0\0\0\0\0\0\0", 9);  // a millisecond after the epoch
  const auto key = [](const std::string& name) {
    return std::string("\0\1", 2) + name + std::string("\1\x37", 2);  // the value is 7
  };
  std::string stream;
  for (const char* command : kLateCommands) stream += testing::Resp(Split(command));
  ScriptedRedis redis({FullSync(Rdb(late + key("a") + late + key("b") + late + key("c") + late +
                                    key("d") + late + key("g"))) +
                       stream});
  StartServer();
  StartLink({.port = redis.port()});
  ASSERT_TRUE(Eventually([&] { return Get("end") == "1"; })) << link_->Status().error;
  EXPECT_EQ(Get("a"), "7");
  EXPECT_EQ(Ask(varve_.get(), {"PEXPIRETIME", "a"}).integer, 4'000'000'000'000);
  EXPECT_EQ(Get("b"), "8");
  EXPECT_TRUE(Ask(varve_.get(), {"GET", "c"}).is_null());
  EXPECT_EQ(Get("d"), "77");
  EXPECT_EQ(Get("f"), "8");
  EXPECT_EQ(Get("i"), "2");
  EXPECT_EQ(Ask(varve_.get(), {"PEXPIRETIME", "h"}).integer, 4'000'000'000'000);
  EXPECT_TRUE(Ask(varve_.get(), {"GET", "j"}).is_null());
  // Nobody sees a key whose time is over, though it is there until the Redis removes it.
  EXPECT_TRUE(Ask(varve_.get(), {"GET", "g"}).is_null());
  link_->Stop();
  redis.Finish();
}

TEST_F(RedisLinkTest, ATransactionThatIsCutComesAgainAndWhatWasBeforeItDoesNot) {
  using testing::Resp;
  const std::string before = Resp({"SELECT", "0"}) + Resp({"INCR", "before"});
  const std::string cut = Resp({"MULTI"}) + Resp({"INCR", "inside"}) + Resp({"SELECT", "99"}) +
                          Resp({"INCR", "beyond"}) + "*2\r\n$4\r\nIN";
  const std::string whole = Resp({"MULTI"}) + Resp({"INCR", "inside"}) + Resp({"EXEC"});
  ScriptedRedis redis(
      {FullSync(Rdb("")) + before + cut, "+CONTINUE\r\n" + whole + Resp({"INCR", "behind"})});
  StartServer();
  StartLink({.port = redis.port()});
  ASSERT_TRUE(Eventually([&] { return Get("behind") == "1"; })) << link_->Status().error;
  EXPECT_EQ(Get("before"), "1");
  EXPECT_EQ(Get("inside"), "1");
  EXPECT_EQ(link_->Status().partial_syncs, 1u);
  link_->Stop();
  redis.Finish();
  const std::string next = std::to_string(1000 + before.size() + 1);
  EXPECT_NE(redis.asked()[1].find(next + "\r\n"), std::string::npos) << redis.asked()[1];
  EXPECT_NE(redis.asked()[1].find(std::string(40, 'a')), std::string::npos);
}

TEST_F(RedisLinkTest, AcknowledgesWhatIsDurable) {
  StartRedis();
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  Do({"SET", "a", "1"});
  EXPECT_EQ(Do({"WAIT", "1", "60000"}).integer, 1);
  EXPECT_EQ(Get("a"), "1");
}

TEST_F(RedisLinkTest, ARedisThatBeginsAnewIsCopiedAnew) {
  StartRedis();
  Do({"SET", "a", "1"});
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  EXPECT_EQ(Get("a"), "1");
  redis_->Stop();
  ASSERT_TRUE(Eventually([&] { return !link_->Status().up && !link_->Status().error.empty(); }));
  EXPECT_EQ(Get("a"), "1");
  redis_->Restart();
  client_ = redis_->Connect();
  ASSERT_NE(client_, nullptr) << redis_->log();
  Do({"SET", "b", "2"});
  ASSERT_TRUE(Syncs(2)) << link_->Status().error;
  ExpectSame();
}

TEST_F(RedisLinkTest, AWrongPasswordIsToldAndNothingIsLost) {
  StartRedis({"--requirepass", "right"}, "right");
  Do({"SET", "a", "1"});
  StartServer();
  Ask(varve_.get(), {"SET", "own", "kept"});
  RedisPrimary primary{.port = 0};
  primary.password = "wrong";
  StartLink(primary);
  ASSERT_TRUE(Eventually([&] { return !link_->Status().error.empty(); }));
  EXPECT_NE(link_->Status().error.find("AUTH: -WRONGPASS"), std::string::npos)
      << link_->Status().error;
  EXPECT_EQ(Get("own"), "kept");
  link_->Stop();
  primary.password = "right";
  StartLink(primary);
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  ExpectSame();
}

TEST_F(RedisLinkTest, FollowsOverTlsAsAUserWithTheRightsOfAReplica) {
  const testing::TempDir directory;
  testing::TestCertificates certificates(directory.path());
  certificates.Issue("server", {.common_name = "server", .alternatives = "IP:127.0.0.1"});
  const uint16_t tls_port = RedisServer::FreePort();
  StartRedis({"--tls-port", std::to_string(tls_port), "--tls-cert-file",
              certificates.File("server.crt"), "--tls-key-file", certificates.File("server.key"),
              "--tls-ca-cert-file", certificates.authority(), "--tls-auth-clients", "no"});
  Do({"ACL", "SETUSER", "follower", "on", ">secret", "+psync", "+replconf", "+ping"});
  Do({"SET", "a", std::string(1'000'000, 'v')});
  RedisPrimary primary;
  primary.port = tls_port;
  primary.user = "follower";
  primary.password = "secret";
  primary.tls.enabled = true;
  StartLink(primary);
  ASSERT_TRUE(Eventually([&] { return !link_->Status().error.empty(); }));
  EXPECT_NE(link_->Status().error.find("certificate"), std::string::npos) << link_->Status().error;
  link_->Stop();
  primary.tls.ca_file = certificates.authority();
  StartLink(primary);
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  Do({"APPEND", "a", "tail"});
  ExpectSame();
}

TEST_F(RedisLinkTest, StopKeepsWhatCame) {
  StartRedis();
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  Do({"SET", "a", "1"});
  ASSERT_TRUE(CatchesUp());
  link_->Stop();
  EXPECT_FALSE(link_->Status().up);
  Do({"SET", "a", "2"});
  EXPECT_EQ(Get("a"), "1");
  Ask(varve_.get(), {"SET", "a", "of this server"});
  EXPECT_EQ(Get("a"), "of this server");
}

TEST_F(RedisLinkTest, AFullStoreEndsTheLinkWithAnError) {
  StartRedis();
  for (int i = 0; i < 10; ++i) Do({"SET", "key:" + std::to_string(i), std::string(400'000, 'v')});
  ServerOptions options;
  options.max_memory = 1u << 20;
  StartServer(options);
  Ask(varve_.get(), {"SET", "own", "kept"});
  StartLink();
  ASSERT_TRUE(Eventually([&] { return !link_->Status().error.empty(); }));
  EXPECT_EQ(Get("own"), "kept");
  EXPECT_TRUE(Ask(varve_.get(), {"NAMESPACE", "LIST"}).elements.empty());
  const RedisLinkStatus status = link_->Status();
  EXPECT_NE(status.error.find("the store is full"), std::string::npos) << status.error;
  EXPECT_TRUE(status.replid.empty());
  EXPECT_EQ(status.full_syncs, 0u);
}

TEST_F(RedisLinkTest, DatabasesThatTheStoreDoesNotHaveAreCounted) {
  StartRedis();
  Do({"SELECT", "3"});
  Do({"SET", "beyond", "1"});
  Do({"SELECT", "0"});
  Do({"SET", "within", "1"});
  ServerOptions options;
  options.databases = 2;
  StartServer(options);
  StartLink();
  ASSERT_TRUE(Syncs(1)) << link_->Status().error;
  Do({"SELECT", "3"});
  Do({"SET", "beyond", "2"});
  Do({"SELECT", "0"});
  Do({"INCR", "within"});
  ASSERT_TRUE(CatchesUp());
  EXPECT_EQ(Get("within"), "2");
  const std::map<std::string, uint64_t> skipped = link_->Status().skipped;
  EXPECT_EQ(skipped.at("key of database 3"), 1u);
  EXPECT_EQ(skipped.at("command in database 3"), 1u);
}

}  // namespace
}  // namespace varve
