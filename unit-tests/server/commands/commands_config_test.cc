// CONFIG over a socket: what may change does so at once, all or nothing, and can be written back
// into the file.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spdlog/spdlog.h"
#include "unit-tests/server/command_fixture.h"
#include "unit-tests/testing/server_process.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::ReadFile;
using testing::TempDir;

class ConfigTest : public testing::CommandTest {
 protected:
  std::string Get(const std::string& name) { return Do({"CONFIG", "GET", name}); }
};

TEST_F(ConfigTest, GetTakesSeveralPatternsAndKnowsRedisNames) {
  EXPECT_EQ(Get("maxclients"), "(maxclients 10000)");
  EXPECT_EQ(Do({"CONFIG", "GET", "SAVE", "tcp-*", "time?ut"}),
            "(SAVE  tcp-keepalive 300 timeout 0)");
  // A name is shown as it was asked for, unless a pattern before it has found it.
  EXPECT_EQ(Do({"CONFIG", "GET", "TimeOut", "timeout", "tcp-keep*", "TCP-KEEPALIVE"}),
            "(tcp-keepalive 300 TimeOut 0)");
  EXPECT_EQ(Do({"CONFIG", "GET", "appendfsync", "sync"}), "(appendfsync always sync always)");
  EXPECT_EQ(Do({"CONFIG", "GET", "databases", "maxmemory", "slowlog-*", "proto-max-bulk-len",
                "requirepass"}),
            "(databases 16 maxmemory 0 proto-max-bulk-len 536870912 requirepass  "
            "slowlog-log-slower-than 10000 "
            "slowlog-max-len 128)");
  // What was left to the server to choose.
  EXPECT_EQ(Get("sync-backend"), "(sync-backend direct)");
  EXPECT_NE(Do({"INFO", "persistence"}).find("sync_backend:direct"), std::string::npos);
  EXPECT_EQ(Get("port"), "(port " + std::to_string(server_.port()) + ")");
  EXPECT_EQ(Get("io-threads"),
            "(io-threads " + std::to_string(server_.state().options.io_threads) + ")");
}

TEST_F(ConfigTest, SetChangesSeveralSettingsOrNone) {
  EXPECT_EQ(Do({"CONFIG", "SET", "MAXCLIENTS", "50", "timeout", "60", "snapshot-max-age", "5s"}),
            "OK");
  EXPECT_EQ(Do({"CONFIG", "GET", "maxclients", "timeout", "snapshot-max-age"}),
            "(maxclients 50 snapshot-max-age 5s timeout 60)");
  EXPECT_EQ(server_.state().live.max_clients, 50u);
  EXPECT_EQ(
      Do({"CONFIG", "SET", "maxclients", "70", "timeout", "-1"}),
      "!ERR CONFIG SET failed (possibly related to argument 'timeout') - takes 0 to 31536000");
  EXPECT_EQ(
      Do({"CONFIG", "SET", "maxclients", "70", "port", "80"}),
      "!ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config");
  EXPECT_EQ(
      Do({"CONFIG", "SET", "maxclients", "70", "maxclients", "80"}),
      "!ERR CONFIG SET failed (possibly related to argument 'maxclients') - duplicate parameter");
  EXPECT_EQ(
      Do({"CONFIG", "SET", "sync", "no", "appendfsync", "no"}),
      "!ERR CONFIG SET failed (possibly related to argument 'appendfsync') - duplicate parameter");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxclients", "70", "maxclient", "80"}),
            "!ERR Unknown option or number of arguments for CONFIG SET - 'maxclient', did you mean "
            "maxclients?");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxclients", "70", "nonsense"}), "!ERR syntax error");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxclients"}),
            "!ERR wrong number of arguments for 'config|set' command");
  EXPECT_EQ(Get("maxclients"), "(maxclients 50)");
  EXPECT_EQ(server_.state().live.max_clients, 50u);
}

TEST_F(ConfigTest, WhatFailsToTakeEffectTakesTheOthersBack) {
  // More descriptors than any limit allows, or, for the almighty, the setting takes effect.
  const std::string reply = Do({"CONFIG", "SET", "timeout", "77", "maxclients", "1000000"});
  if (reply == "OK") GTEST_SKIP() << "this process may open a million files";
  EXPECT_TRUE(
      reply.starts_with("!ERR CONFIG SET failed (possibly related to argument 'maxclients') - the "
                        "limit on open files"))
      << reply;
  EXPECT_EQ(Get("timeout"), "(timeout 0)");
  EXPECT_EQ(server_.state().live.idle_timeout.load().count(), 0);
}

// What was chosen for this machine is in force, and comes back, not what was given.
TEST_F(ConfigTest, WhatIsTakenBackIsWhatWasInForce) {
  ServerConfig given;
  given.server.max_clients_memory = 1u << 30;
  server_.UseProgram({.given = given});
  Restart();
  const size_t in_force = server_.state().live.max_clients_memory;
  ASSERT_NE(in_force, given.server.max_clients_memory);
  const std::string reply =
      Do({"CONFIG", "SET", "maxmemory-clients", "100mb", "maxclients", "1000000"});
  if (reply == "OK") GTEST_SKIP() << "this process may open a million files";
  EXPECT_EQ(server_.state().live.max_clients_memory, in_force);
  EXPECT_EQ(Get("maxmemory-clients"), "(maxmemory-clients " + std::to_string(in_force) + ")");
}

TEST_F(ConfigTest, WhatIsAlwaysTheSameCanBeSetToThat) {
  EXPECT_EQ(Do({"CONFIG", "SET", "save", "", "appendonly", "yes"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "save", "900 1"}),
            "!ERR CONFIG SET failed (possibly related to argument 'save') - it is always ''");
}

TEST_F(ConfigTest, MaxclientsHoldsForTheNextConnection) {
  EXPECT_EQ(Do({"CONFIG", "SET", "maxclients", "1"}), "OK");
  RawConnection second(server_.port());
  EXPECT_EQ(second.ReceiveAll(), "-ERR max number of clients reached\r\n");
  EXPECT_EQ(Do({"CONFIG", "SET", "maxclients", "2"}), "OK");
  EXPECT_EQ(server_.Connect()->Ping(), absl::OkStatus());
}

TEST_F(ConfigTest, OutputLimitsChangeClassByClass) {
  EXPECT_EQ(Do({"CONFIG", "SET", "client-output-buffer-limit", "normal 20MiB 10MiB 5"}), "OK");
  EXPECT_EQ(Get("client-output-buffer-limit"),
            "(client-output-buffer-limit normal 20971520 10485760 5 pubsub 33554432 8388608 60)");
  EXPECT_EQ(server_.state().live.reply_limits.Get(),
            (OutputLimits{20u << 20, 10u << 20, std::chrono::seconds(5)}));
}

TEST_F(ConfigTest, ValuesGrowAsFarAsTheirLimit) {
  EXPECT_EQ(Do({"CONFIG", "SET", "proto-max-bulk-len", "1MiB"}), "OK");
  const std::string most(1u << 20, 'x');
  EXPECT_EQ(Do({"SET", "k", most}), "OK");
  EXPECT_EQ(Do({"SETRANGE", "k", "1048575", "y"}), "1048576");
  EXPECT_EQ(Do({"SETBIT", "k", "8388607", "0"}), "1");
  const std::string too_long = "!ERR string exceeds maximum allowed size (proto-max-bulk-len)";
  EXPECT_EQ(Do({"APPEND", "k", "x"}), too_long);
  EXPECT_EQ(Do({"SETRANGE", "k", "1048576", "x"}), too_long);
  const std::string beyond = "!ERR bit offset is not an integer or out of range";
  EXPECT_EQ(Do({"SETBIT", "k", "8388608", "1"}), beyond);
  EXPECT_EQ(Do({"BITFIELD", "k", "SET", "u8", "8388601", "1"}), beyond);
  RawConnection larger(server_.port());
  ASSERT_TRUE(larger.Send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n"));
  EXPECT_EQ(larger.ReceiveAll(), "-ERR Protocol error: invalid bulk length\r\n");
}

TEST_F(ConfigTest, TimeoutHoldsForConnectionsThatAreThere) {
  RawConnection idle(server_.port());
  ASSERT_TRUE(idle.Send("PING\r\n"));
  EXPECT_EQ(idle.Receive(7), "+PONG\r\n");
  EXPECT_EQ(Do({"CONFIG", "SET", "timeout", "1"}), "OK");
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_TRUE(idle.closed());
}

TEST_F(ConfigTest, SyncHoldsForTheNextWrite) {
  const auto syncs = [&] {
    for (const auto& [name, value] : server_.store().Statistics()) {
      if (name == "log_syncs") return value;
    }
    return uint64_t{0};
  };
  EXPECT_EQ(Do({"CONFIG", "SET", "appendfsync", "no"}), "OK");
  EXPECT_EQ(Get("sync"), "(sync no)");
  const uint64_t before = syncs();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_LT(syncs(), before + 10);
  EXPECT_EQ(Do({"CONFIG", "SET", "sync", "always"}), "OK");
  const uint64_t lax = syncs();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Do({"SET", "k", "v"}), "OK");
  EXPECT_GE(syncs(), lax + 50);
}

TEST_F(ConfigTest, SlowlogSettingsHoldAtOnceAndPasswordsStayOutOfIt) {
  EXPECT_EQ(Do({"CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "3"}), "OK");
  EXPECT_EQ(Do({"AUTH", "default", "secret"}), "OK");
  EXPECT_EQ(Do({"CONFIG", "SET", "requirepass", "secret"}), "OK");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Do({"SLOWLOG", "LEN"}), "3");
  EXPECT_EQ(Do({"CONFIG", "SET", "slowlog-max-len", "100"}), "OK");
  EXPECT_EQ(Do({"SLOWLOG", "GET"}).find("secret"), std::string::npos);
  EXPECT_EQ(Do({"CONFIG", "SET", "slowlog-log-slower-than", "-1"}), "OK");
  EXPECT_EQ(Do({"SLOWLOG", "RESET"}), "OK");
  EXPECT_EQ(Do({"SLOWLOG", "LEN"}), "0");
}

TEST_F(ConfigTest, LoglevelHoldsAtOnce) {
  const auto before = spdlog::get_level();
  EXPECT_EQ(Do({"CONFIG", "SET", "loglevel", "error"}), "OK");
  EXPECT_EQ(spdlog::get_level(), spdlog::level::err);
  spdlog::set_level(before);
}

TEST_F(ConfigTest, ResetStatLetsCountsBeginAnew) {
  for (int i = 0; i < 20; ++i) Do({"PING"});
  EXPECT_GE(server_.state().statistics.requests.load(), 20u);
  EXPECT_EQ(Do({"CONFIG", "RESETSTAT"}), "OK");
  EXPECT_LE(server_.state().statistics.requests.load(), 1u);
  EXPECT_EQ(server_.state().clients.connected.load(), 1u);
  EXPECT_EQ(Do({"CONFIG", "RESETSTAT", "x"}),
            "!ERR wrong number of arguments for 'config|resetstat' command");
}

TEST_F(ConfigTest, RewriteNeedsAFile) {
  EXPECT_EQ(Do({"CONFIG", "REWRITE"}), "!ERR The server is running without a config file");
}

TEST_F(ConfigTest, RewriteWritesWhatIsInForceAndNothingElse) {
  TempDir dir;
  const std::string file = dir.File("varve.toml");
  std::ofstream(file) << "# Mine.\ntimeout = 0 # never\n";
  server_.UseProgram({.config_file = file});
  Restart();
  EXPECT_EQ(Do({"CONFIG", "SET", "timeout", "600", "sync", "everysec"}), "OK");
  EXPECT_EQ(ReadFile(file), "# Mine.\ntimeout = 0 # never\n");
  EXPECT_EQ(Do({"CONFIG", "REWRITE"}), "OK");
  // Flags are settings in force, too; what was left to the server to choose stays so.
  EXPECT_EQ(ReadFile(file),
            "# Mine.\ntimeout = 600 # never\nport = 0\nsync = \"everysec\"\nwrite-buffer-size = "
            "\"256KiB\"\n");
  EXPECT_EQ(Do({"CONFIG", "REWRITE", "x"}),
            "!ERR wrong number of arguments for 'config|rewrite' command");
  std::ofstream(file) << "broken";
  EXPECT_NE(Do({"CONFIG", "REWRITE"}).find("!ERR Rewriting config file: " + file + ":1: "),
            std::string::npos);
}

}  // namespace
}  // namespace varve
