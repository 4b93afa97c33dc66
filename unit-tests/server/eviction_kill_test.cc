// Eviction in server_main across kill -9.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "client/client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Eventually;
using testing::ServerProcess;
using testing::TempDir;

constexpr size_t kReadsTogether = 32;
constexpr size_t kCacheEntrySize = 100;

std::string CacheKey(size_t key) {
  const std::string digits = std::to_string(key);
  return "key:" + std::string(8 - digits.size(), '0') + digits;
}
const std::string& CacheValue() {
  static const std::string value(kCacheEntrySize - 12, 'v');
  return value;
}

std::unique_ptr<Client> ConnectToCache(const ServerProcess& server) {
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60));
  EXPECT_TRUE(client.ok()) << client.status() << server.log();
  return client.ok() ? *std::move(client) : nullptr;
}

uint64_t Stat(Client& client, const std::string& name) {
  const std::string info = Ask(client, {"INFO", "stats"});
  const size_t begin = info.find("\r\n" + name + ":") + name.size() + 3;
  return std::stoull(info.substr(begin, info.find('\r', begin) - begin));
}

// In each round keys are evicted that were written before the last round's reads; what was read
// stays, as the reads were noted before the process was killed.
TEST(EvictionKillTest, ReadsCountAfterAKill) {
  TempDir dir;
  const std::vector<std::string> settings = {"--sync=no", "--maxmemory=100000",
                                             "--maxmemory-policy=allkeys-lru"};
  for (size_t round = 0; round < 3; ++round) {
    ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), settings);
    const std::unique_ptr<Client> client = ConnectToCache(server);
    ASSERT_NE(client, nullptr);
    for (size_t key = 0; round == 0 && key < 100; ++key)
      ASSERT_EQ(Ask(*client, {"SET", CacheKey(key), CacheValue()}), "OK");
    // More than fits, less than would take the keys that are read with it.
    const size_t first = 1000 + 2000 * round, last = first + 699;
    for (size_t key = first; key <= last; ++key)
      ASSERT_EQ(Ask(*client, {"SET", CacheKey(key), CacheValue()}), "OK");
    // The store knows to a second when something was written; this write says that all before it
    // was written before the reads.
    ASSERT_TRUE(Eventually([&] {
      return std::stoull(Ask(*client, {"OBJECT", "IDLETIME", CacheKey(last)})) >= 2;
    }));
    ASSERT_EQ(Ask(*client, {"SET", CacheKey(last), CacheValue()}), "OK");
    for (size_t key = 0; key < 100; ++key)
      ASSERT_EQ(Ask(*client, {"GET", CacheKey(key)}), CacheValue())
          << "round " << round << " key " << key;
    // What is noted after this moment has all of them, unless an earlier round had; and one more
    // read lets there be something to note.
    const uint64_t noted = Stat(*client, "eviction_noted_reads");
    ASSERT_EQ(Ask(*client, {"GET", CacheKey(last)}), CacheValue());
    ASSERT_TRUE(Eventually([&] { return Stat(*client, "eviction_noted_reads") > noted; }));
    server.process().Kill(SIGKILL);
    server.process().Wait();
  }
}

// Reads and writes keys of its own until its server is gone.
void BearLoad(int port, size_t first_key, std::atomic<bool>* is_over) {
  constexpr size_t kOwnKeys = 25'000;
  auto client = Client::Connect("127.0.0.1", port, std::chrono::seconds(60));
  for (size_t request = 0; client.ok() && !*is_over; request += kReadsTogether) {
    for (size_t i = 0; i < kReadsTogether; ++i) {
      const std::string key = CacheKey(first_key + (request + i) * 7 % kOwnKeys);
      const bool writes = i % 8 == 0;
      const absl::Status sent =
          writes ? (*client)->Send(std::vector<std::string_view>{"SET", key, CacheValue()})
                 : (*client)->Send(std::vector<std::string_view>{"GET", key});
      if (!sent.ok()) return;
    }
    for (size_t i = 0; i < kReadsTogether; ++i) {
      if (!(*client)->Receive().ok()) return;
    }
  }
}

// The promise is one about time, a second: asking the server whether it has noted the reads would
// wait for what is to be shown. The test gives a server ten seconds that shares its processors with
// other tests; reads that only stayed in its memory would be lost all the same.
TEST(EvictionKillTest, ReadsThatWereAnsweredBeforeAKillCountUnderLoad) {
  TempDir dir;
  const std::vector<std::string> settings = {"--sync=no", "--maxmemory=1000000000",
                                             "--maxmemory-policy=allkeys-lru"};
  constexpr size_t kRead = 500;
  uint64_t dropped = 0;
  {
    ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), settings);
    const std::unique_ptr<Client> client = ConnectToCache(server);
    ASSERT_NE(client, nullptr);
    for (size_t key = 0; key <= kRead + 1; ++key)
      ASSERT_EQ(Ask(*client, {"SET", CacheKey(key), CacheValue()}), "OK");
    std::atomic<bool> is_over{false};
    std::thread one([&] { BearLoad(server.port(), 10'000, &is_over); });
    std::thread other([&] { BearLoad(server.port(), 50'000, &is_over); });
    const absl::Cleanup end = [&] {
      is_over = true;
      one.join();
      other.join();
    };
    ASSERT_TRUE(Eventually([&] {
      return std::stoull(Ask(*client, {"OBJECT", "IDLETIME", CacheKey(kRead)})) >= 6;
    }));
    for (size_t key = 0; key < kRead; ++key)
      ASSERT_EQ(Ask(*client, {"GET", CacheKey(key)}), CacheValue());
    std::this_thread::sleep_for(std::chrono::seconds(10));
    dropped = Stat(*client, "eviction_dropped_reads");
    server.process().Kill(SIGKILL);
    server.process().Wait();
  }
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"), settings);
  const std::unique_ptr<Client> client = ConnectToCache(server);
  ASSERT_NE(client, nullptr);
  // Before the order is open, writes alone count, and no read is noted.
  ASSERT_TRUE(Eventually([&] {
    return Ask(*client, {"GET", CacheKey(kRead + 1)}) == CacheValue() &&
           Stat(*client, "eviction_noted_reads") > 0;
  }));
  const auto idle = [&](size_t key) {
    return std::stoull(Ask(*client, {"OBJECT", "IDLETIME", CacheKey(key)}));
  };
  size_t lost = 0;
  for (size_t key = 0; key < kRead; ++key) lost += idle(key) + 3 > idle(kRead) ? 1 : 0;
  EXPECT_LE(lost, dropped);
}

}  // namespace
}  // namespace varve
