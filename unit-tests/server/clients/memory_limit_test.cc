// server_main under --memory-limit: it holds while several times as much is written and read.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/process_memory.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

constexpr uint64_t kLimit = uint64_t{128} << 20;
constexpr uint64_t kTolerance = kLimit / 10;  // for what an allocator does
constexpr int kClients = 4;
constexpr int kRequests = 80'000;  // of each client
constexpr int kAhead = 32;
constexpr int kKeys = 300'000;

// `next` sends a request. Every reply has to be no error.
template <typename Next>
void Run(uint16_t port, Next next) {
  auto client = Client::Connect("127.0.0.1", port, std::chrono::seconds(60));
  ASSERT_TRUE(client.ok()) << client.status();
  std::mt19937 random(
      static_cast<uint32_t>(std::hash<std::thread::id>()(std::this_thread::get_id())));
  for (int i = 0; i < kRequests; i += kAhead) {
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      ASSERT_TRUE(next(client->get(), "key:" + std::to_string(random() % kKeys)).ok());
    }
    for (int ahead = 0; ahead < kAhead; ++ahead) {
      const absl::StatusOr<Reply> reply = (*client)->Receive();
      ASSERT_TRUE(reply.ok()) << reply.status();
      ASSERT_FALSE(reply->is_error()) << reply->text;
    }
  }
}

template <typename Next>
void RunAll(uint16_t port, Next next) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back([&] { Run(port, next); });
  for (std::thread& thread : threads) thread.join();
}

uint64_t PeakOf(const testing::ServerProcess& server) {
  auto client = Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60));
  EXPECT_TRUE(client.ok()) << client.status();
  if (!client.ok()) return 0;
  const absl::StatusOr<Reply> info = (*client)->Call({"INFO", "memory"});
  EXPECT_TRUE(info.ok()) << info.status();
  const size_t at = info.ok() ? info->text.find("used_memory_peak:") : std::string::npos;
  EXPECT_NE(at, std::string::npos);
  return at == std::string::npos ? 0 : std::strtoull(info->text.c_str() + at + 17, nullptr, 10);
}

TEST(MemoryLimitTest, HoldsWhileMoreIsWrittenAndReadAndRecovered) {
  if (!testing::kMemoryIsTold) GTEST_SKIP() << "sanitizers take memory of their own";
  const testing::TempDir dir;
  const std::vector<std::string> flags = {"--memory-limit=128MiB", "--sync=no"};
  const std::string value(1000, 'v');
  {
    testing::ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), flags);
    ASSERT_NE(server.port(), 0) << server.log();
    RunAll(server.port(), [&](Client* client, const std::string& key) {
      return client->Send({"SET", key, value});
    });
    RunAll(server.port(), [&](Client* client, const std::string& key) {
      return client->Send({"GET", key});
    });
    EXPECT_LE(PeakOf(server), kLimit + kTolerance);
    server.process().Kill(SIGKILL);
    server.process().Wait();
  }
  testing::ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), flags);
  ASSERT_NE(server.port(), 0) << server.log();
  EXPECT_LE(PeakOf(server), kLimit + kTolerance);
}

}  // namespace
}  // namespace varve
