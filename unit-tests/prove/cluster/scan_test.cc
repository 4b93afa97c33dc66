// A namespace that lies in many regions is read in the order of its keys, both ways.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "unit-tests/prove/cluster/cluster.h"

namespace varve::testing {
namespace {

constexpr size_t kScannedKeys = 100'000;

// Keys of any bytes, among them zeros and those above 0x7f, in order.
std::vector<std::string> AnyKeys() {
  std::mt19937_64 random(24);
  std::vector<std::string> keys;
  for (size_t i = 0; keys.size() < kScannedKeys; ++i) {
    std::string key;
    const uint64_t first = random(), second = random();
    key.assign(reinterpret_cast<const char*>(&first), sizeof(first));
    if (i % 3 == 0) key.append(reinterpret_cast<const char*>(&second), random() % sizeof(second));
    keys.push_back(std::move(key));
    if (i % 100 == 0) keys.push_back(keys.back() + '\0');
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// Writes each key with its place as its value, many at a time.
void Load(const std::vector<std::string>& keys, Client* client) {
  constexpr size_t kAtOnce = 2000;
  for (size_t begin = 0; begin < keys.size(); begin += kAtOnce) {
    const size_t end = std::min(begin + kAtOnce, keys.size());
    for (size_t i = begin; i < end; ++i) {
      ASSERT_TRUE(client->Send({"SET", keys[i], std::to_string(i)}).ok());
    }
    for (size_t i = begin; i < end; ++i) {
      const auto reply = client->Receive();
      ASSERT_TRUE(reply.ok()) << reply.status();
      ASSERT_FALSE(reply->is_error()) << reply->text;
    }
  }
}

// How many keys came at the place where they belong, before the first that did not.
size_t CountInOrder(const std::vector<std::string>& keys, bool reverse, Client* client) {
  size_t read = 0;
  const auto is_next = [&](std::string&& key, std::string&& value, uint64_t /*expires_at_ms*/) {
    if (read == keys.size()) return false;
    const size_t place = reverse ? keys.size() - 1 - read : read;
    if (key != keys[place] || value != std::to_string(place)) return false;
    ++read;
    return true;
  };
  const absl::Status status =
      client->StreamRange("-", "+", {.reverse = reverse}, {.begin = nullptr, .pair = is_next});
  EXPECT_TRUE(status.ok()) << status;
  return read;
}

TEST(ClusterScanTest, ReadsManyRegionsInOrderBothWays) {
  Cluster cluster("scan");
  const auto server = cluster.StartServer();
  const auto client = ConnectTo(*server);
  ASSERT_NE(client, nullptr);
  const std::vector<std::string> keys = AnyKeys();
  ASSERT_NO_FATAL_FAILURE(Load(keys, client.get()));

  EXPECT_GE(std::stoi(cluster.Admin({"spread", cluster.table(), "6"})), 6);
  EXPECT_EQ(CountInOrder(keys, /*reverse=*/false, client.get()), keys.size());
  EXPECT_EQ(CountInOrder(keys, /*reverse=*/true, client.get()), keys.size());

  // A server that has never seen the regions finds the same.
  const auto other_server = cluster.StartServer();
  const auto other = ConnectTo(*other_server);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(CountInOrder(keys, /*reverse=*/true, other.get()), keys.size());
  const auto count = other->Call({"DBSIZE"});
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count->integer, static_cast<int64_t>(keys.size()));
}

}  // namespace
}  // namespace varve::testing
