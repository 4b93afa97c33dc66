// Groups stay whole, and refusals stay the same, while HBase splits and moves the regions below.
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "unit-tests/prove/cluster/cluster.h"

namespace varve::testing {
namespace {

constexpr int kGroupWriters = 4;
constexpr int kGroupsOfAWriter = 10;
constexpr int kKeysOfAGroup = 5;
constexpr int kBeyondAGroup = 100;  // more than a group has

std::string GroupName(int writer, int group) { return fmt::format("w{}g{:02}", writer, group); }

// What the threads of a test see; each has its own.
struct Seen {
  uint64_t done = 0;
  std::vector<std::string> complaints;
  std::map<std::string, std::string> last;  // by group: what was acknowledged last
};

void Complain(std::string complaint, Seen* seen) {
  if (seen->complaints.size() < 5) seen->complaints.push_back(std::move(complaint));
}

// Writes all keys of a group together, by MSET and by transactions in turn.
absl::Status WriteGroup(const std::string& group, const std::string& value, bool by_transaction,
                        Client* client) {
  std::vector<std::string> keys;
  for (int key = 0; key < kKeysOfAGroup; ++key) keys.push_back(fmt::format("{}:{}", group, key));
  if (!by_transaction) {
    std::vector<std::string_view> request = {"MSET"};
    for (const std::string& key : keys) request.insert(request.end(), {key, value});
    return client->Call(request).status();
  }
  auto reply = client->Call({"MULTI"});
  for (const std::string& key : keys) {
    if (reply.ok()) reply = client->Call({"SET", key, value});
  }
  if (reply.ok()) reply = client->Call({"EXEC"});
  return reply.status();
}

void WriteGroups(int writer, const std::atomic<bool>& stop, Client* client, Seen* seen) {
  for (uint64_t number = 1; !stop.load(); ++number) {
    const std::string group = GroupName(writer, static_cast<int>(number % kGroupsOfAWriter));
    const std::string value = fmt::format("{}-{}", writer, number);
    const absl::Status status = WriteGroup(group, value, number % 3 == 0, client);
    if (!status.ok()) return Complain(group + ": " + status.ToString(), seen);
    seen->last[group] = value;
    ++seen->done;
  }
}

// One region has the whole group, so that what PREFIX shows of it is of one moment. With a limit,
// an I/O thread asks for the range; without one, a thread that may wait does.
void CheckGroup(const std::string& group, bool with_limit, Client* client, Seen* seen) {
  RangeQuery query;
  if (with_limit) query.limit = kBeyondAGroup;
  const auto pairs = client->Prefix(group + ":", query);
  if (!pairs.ok()) return Complain(group + ": " + pairs.status().ToString(), seen);
  std::set<std::string> values;
  for (const auto& [key, value] : *pairs) values.insert(value);
  ++seen->done;
  if (pairs->size() == kKeysOfAGroup && values.size() == 1) return;
  Complain(fmt::format("{} is torn: {} keys, {} values", group, pairs->size(), values.size()),
           seen);
}

void ReadGroups(const std::atomic<bool>& stop, Client* client, Seen* seen) {
  for (bool with_limit = true; !stop.load(); with_limit = !with_limit) {
    for (int i = 0; i < kGroupWriters * kGroupsOfAWriter && !stop.load(); ++i) {
      CheckGroup(GroupName(i / kGroupsOfAWriter, i % kGroupsOfAWriter), with_limit, client, seen);
    }
  }
}

// Two groups are refused together, whether or not they lie in one region.
void TryTwoGroups(const std::atomic<bool>& stop, Client* client, Seen* seen) {
  for (int i = 0; !stop.load(); ++i) {
    const std::string one = GroupName(i % kGroupWriters, 0) + ":0";
    const std::string two = GroupName(i % kGroupWriters, 1 + i % (kGroupsOfAWriter - 1)) + ":0";
    const auto reply = client->Call({"MSET", one, "torn", two, "torn"});
    ++seen->done;
    if (!reply.ok() && absl::StartsWith(reply.status().message(), "CROSSGROUP")) continue;
    Complain(one + " and " + two + ": " + reply.status().ToString(), seen);
  }
}

class ClusterGroupsTest : public ::testing::Test {
 protected:
  // A connection to one of two servers, in the namespace of the test.
  std::unique_ptr<Client> Connect(size_t number) {
    auto client = ConnectTo(*servers_[number % servers_.size()]);
    if (client == nullptr) return nullptr;
    const auto reply = client->Call({"NAMESPACE", "USE", "groups"});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return client;
  }

  Cluster cluster_{"groups"};
  std::vector<std::unique_ptr<ServerProcess>> servers_;
};

TEST_F(ClusterGroupsTest, StayWholeWhileRegionsSplitAndMove) {
  for (int i = 0; i < 2; ++i) servers_.push_back(cluster_.StartServer());
  for (const auto& server : servers_) ASSERT_NE(server->port(), 0);
  const auto created =
      ConnectTo(*servers_[0])->Call({"NAMESPACE", "CREATE", "groups", "GROUP", ":"});
  ASSERT_TRUE(created.ok()) << created.status();
  constexpr size_t kThreads = kGroupWriters + 3;
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kThreads; ++i) clients.push_back(Connect(i));
  std::vector<Seen> seen(kThreads);
  for (int writer = 0; writer < kGroupWriters; ++writer) {
    for (int group = 0; group < kGroupsOfAWriter; ++group) {
      ASSERT_TRUE(WriteGroup(GroupName(writer, group), "first", false, clients[0].get()).ok());
    }
  }

  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      if (i < kGroupWriters)
        return WriteGroups(static_cast<int>(i), stop, clients[i].get(), &seen[i]);
      if (i + 1 < kThreads) return ReadGroups(stop, clients[i].get(), &seen[i]);
      TryTwoGroups(stop, clients[i].get(), &seen[i]);
    });
  }
  const std::string churn =
      cluster_.Admin({"churn", cluster_.table() + "-group-3a", IsLongForm() ? "60" : "15", "24"});
  stop.store(true);
  for (std::thread& thread : threads) thread.join();

  for (const Seen& one : seen) EXPECT_THAT(one.complaints, ::testing::IsEmpty());
  for (const Seen& one : seen) EXPECT_GT(one.done, 10u);
  for (const Seen& one : seen) {
    for (const auto& [group, value] : one.last) {
      const auto pairs = clients.back()->Prefix(group + ":");
      ASSERT_TRUE(pairs.ok()) << pairs.status();
      EXPECT_EQ(pairs->size(), size_t{kKeysOfAGroup}) << group;
      for (const auto& [key, found] : *pairs) EXPECT_EQ(found, value) << key;
    }
  }
  EXPECT_FALSE(absl::StartsWith(churn, "0 splits")) << churn;
  RecordProperty("churn", churn);
}

}  // namespace
}  // namespace varve::testing
