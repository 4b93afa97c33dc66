// The hits of a cache whose keys are evicted, beside those of Debian's redis-server on the same
// requests and of a true LRU.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "unit-tests/server/access_trace.h"
#include "unit-tests/server/following/redis_server.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::Ask;
using testing::RedisServer;
using testing::ServerProcess;
using testing::TempDir;
using testing::TrueLru;
using testing::ZipfKeys;

constexpr size_t kZipfKeys = 100'000, kZipfRequests = 300'000, kReadsTogether = 32;
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

// Sends the requests of a cache: GETs, and a SET for each key that was missing. Returns the hits in
// a hundred.
double HitsOf(Client& client) {
  ZipfKeys keys(kZipfKeys, 0.99);
  size_t hits = 0;
  for (size_t request = 0; request < kZipfRequests; request += kReadsTogether) {
    std::vector<std::string> asked;
    for (size_t i = 0; i < kReadsTogether; ++i) asked.push_back(CacheKey(keys.Next()));
    for (const std::string& key : asked)
      EXPECT_TRUE(client.Send(std::vector<std::string_view>{"GET", key}).ok());
    std::vector<std::string> missing;
    for (const std::string& key : asked) {
      const absl::StatusOr<Reply> reply = client.Receive();
      if (!reply.ok()) return 0;
      testing::ReplyText(*reply) == "nil" ? missing.push_back(key) : void(++hits);
    }
    for (const std::string& key : missing)
      EXPECT_TRUE(client.Send(std::vector<std::string_view>{"SET", key, CacheValue()}).ok());
    for (size_t i = 0; i < missing.size(); ++i)
      EXPECT_EQ(testing::ReplyText(*client.Receive()), "OK");
  }
  return 100.0 * static_cast<double>(hits) / kZipfRequests;
}

double TrueLruHits(size_t capacity) {
  ZipfKeys keys(kZipfKeys, 0.99);
  TrueLru lru(capacity);
  size_t hits = 0;
  for (size_t request = 0; request < kZipfRequests; ++request) hits += lru.Use(keys.Next()) ? 1 : 0;
  return 100.0 * static_cast<double>(hits) / kZipfRequests;
}

TEST(HitRatioTest, IsThatOfTrueLruAndNotBelowThatOfRedis) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "no redis-server here";
  RedisServer redis({"--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"});
  const std::unique_ptr<Client> peer = redis.Connect();
  ASSERT_NE(peer, nullptr) << redis.log();
  const double redis_hits = HitsOf(*peer);
  // The same number of keys for both, whatever memory Redis takes for each.
  const size_t capacity = std::stoull(Ask(*peer, {"DBSIZE"}));
  ASSERT_GT(capacity, 1000u);
  TempDir dir;
  ServerProcess server(VARVE_SERVER_MAIN, dir.File("data"),
                       {"--sync=no", "--maxmemory=" + std::to_string(capacity * kCacheEntrySize),
                        "--maxmemory-policy=allkeys-lru"});
  const std::unique_ptr<Client> client = ConnectToCache(server);
  ASSERT_NE(client, nullptr);
  const double hits = HitsOf(*client), true_hits = TrueLruHits(capacity);
  EXPECT_LE(std::stoull(Ask(*client, {"DBSIZE"})), capacity);
  RecordProperty("capacity", std::to_string(capacity));
  RecordProperty("varve_percent", std::to_string(hits));
  RecordProperty("redis_percent", std::to_string(redis_hits));
  RecordProperty("true_lru_percent", std::to_string(true_hits));
  EXPECT_GE(hits, true_hits - 1);
  EXPECT_GE(hits, redis_hits);
}

}  // namespace
}  // namespace varve
