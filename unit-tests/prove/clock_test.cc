// A server whose wall clock is set forward and back by 30 days while it is written to: whatever
// waits or measures goes by the steady clock.
#include <gtest/gtest.h>
#include <signal.h>

#include <charconv>
#include <fstream>
#include <thread>

#include "client/client.h"
#include "unit-tests/prove/fleet.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::prove {
namespace {

using std::chrono::milliseconds;
using testing::Eventually;
using testing::ServerProcess;
using testing::TempDir;

[[maybe_unused]] constexpr int64_t kMonth = 30 * 24 * 3600;  // seconds

class ClockTest : public ::testing::Test {
 protected:
  ClockTest() { SetClock(0); }

  // In place, so that a running server sees it.
  void SetClock(int64_t seconds) {
    std::fstream file(offset_, std::ios::in | std::ios::out | std::ios::binary);
    if (!file.is_open()) file.open(offset_, std::ios::out | std::ios::binary);
    file.write(reinterpret_cast<const char*>(&seconds), sizeof(seconds));
    file.flush();
    ASSERT_TRUE(file.good());
  }

  std::unique_ptr<ServerProcess> Start(std::vector<std::string> flags) {
    auto server = std::make_unique<ServerProcess>(
        VARVE_SERVER_MAIN, directory_.File("data"), std::move(flags),
        std::vector<std::string>{"env", "LD_PRELOAD=" VARVE_CLOCK_SHIM,
                                 "VARVE_CLOCK_OFFSET=" + offset_});
    EXPECT_NE(server->port(), 0) << server->log();
    return server;
  }
  static std::unique_ptr<Client> Connect(const ServerProcess& server) {
    auto client = Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(20));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  // The number behind "name:" in INFO.
  static int64_t Info(Client* client, const std::string& name) {
    const absl::StatusOr<Reply> info = client->Call({"INFO"});
    EXPECT_TRUE(info.ok()) << info.status();
    const size_t at = info.ok() ? info->text.find("\n" + name + ":") : std::string::npos;
    EXPECT_NE(at, std::string::npos) << name;
    return at == std::string::npos
               ? -1
               : std::strtoll(info->text.c_str() + at + name.size() + 2, nullptr, 10);
  }

  TempDir directory_;
  const std::string offset_ = directory_.File("offset");
};

// Sanitizers want to be loaded first.
#if !defined(VARVE_WATCHED_MEMORY)

// absl::CondVar measures time-outs by the wall clock: a clock set back by a month made the log's
// second take a month, and everysec synced nothing that time.
TEST_F(ClockTest, WritesAreSyncedEachSecondWhateverTheClockSays) {
  const std::unique_ptr<ServerProcess> server = Start({"--sync=everysec"});
  const std::unique_ptr<Client> client = Connect(*server);
  for (const int64_t offset : {kMonth, -kMonth, int64_t{0}, -kMonth, kMonth}) {
    SetClock(offset);
    const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
    EXPECT_NEAR(
        static_cast<double>(Info(client.get(), "server_time_usec") / 1'000'000 - now - offset), 0,
        100);
    ASSERT_TRUE(client->Put("k", std::to_string(offset)).ok());
    const int64_t written = Info(client.get(), "sequence");
    ASSERT_TRUE(Eventually([&] { return Info(client.get(), "durable_sequence") >= written; }))
        << "the log's second has not ended";
  }
}

TEST_F(ClockTest, NothingBreaksUnderLoad) {
  Fleet fleet(3, 1);
  for (const char* flag : {"--sync=always", "--sync=everysec"}) {
    SetClock(-kMonth);
    const std::unique_ptr<ServerProcess> server =
        Start({flag, "--write-buffer-size=64KiB", "--group-max-delay=1ms", "--timeout=3600",
               "--slowlog-log-slower-than=30000000"});
    const std::unique_ptr<Client> idle = Connect(*server);
    ASSERT_TRUE(fleet.Start(server->port(), 4).ok());
    for (const int64_t offset : {int64_t{0}, kMonth, -kMonth, kMonth}) {
      SetClock(offset);
      const int64_t before = Info(idle.get(), "total_commands_processed");
      std::this_thread::sleep_for(milliseconds(300));
      EXPECT_TRUE(Eventually([&] {
        return Info(idle.get(), "total_commands_processed") > before + 10;
      })) << "it stands still";
    }
    const std::unique_ptr<Client> client = Connect(*server);
    EXPECT_LT(Info(client.get(), "uptime_in_seconds"), 1000);
    EXPECT_EQ(Info(client.get(), "slowlog_entries"), 0) << "a request seemed to take a month";
    EXPECT_EQ(idle->Ping(), absl::OkStatus()) << "silent for a month, by the wall clock";
    server->process().Kill(SIGKILL);
    server->process().Wait();
    fleet.Join();
    SetClock(0);
    const std::unique_ptr<ServerProcess> again = Start({});
    const Figures figures = fleet.Check(again->port());
    EXPECT_TRUE(figures.complaints.empty()) << figures.complaints[0];
    EXPECT_GT(figures.acknowledged, 0u);
  }
}

TEST_F(ClockTest, SilentConnectionsAreClosedInTimeThoughTheClockIsSetBack) {
  const std::unique_ptr<ServerProcess> server = Start({"--timeout=1"});
  const std::unique_ptr<Client> silent = Connect(*server);
  ASSERT_EQ(silent->Ping(), absl::OkStatus());
  SetClock(-kMonth);
  const std::unique_ptr<Client> busy = Connect(*server);
  EXPECT_TRUE(Eventually([&] { return Info(busy.get(), "connected_clients") == 1; }));
  EXPECT_FALSE(silent->Ping().ok());
}

#endif

}  // namespace
}  // namespace varve::prove
