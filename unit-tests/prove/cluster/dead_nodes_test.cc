// Processes of the cluster are killed under writers: region servers with their data nodes, the name
// node, the master, ZooKeeper.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "unit-tests/prove/cluster/cluster.h"
#include "unit-tests/prove/cluster/writers.h"

namespace varve::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kWriters = 12;

int64_t Millis(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

// Expects a time within its limit. The long form has the machine for itself; the short form, which
// runs on machines that are busy with others, only prints what it measured.
void ExpectWithin(int64_t limit_ms, int64_t measured_ms) {
  if (IsLongForm()) EXPECT_LE(measured_ms, limit_ms);
}

class ClusterDeadNodesTest : public ::testing::Test {
 protected:
  // Has the writers' keys lie in regions of all three servers.
  void Begin(size_t writers) {
    server_ = cluster_.StartServer();
    other_server_ = cluster_.StartServer();
    ASSERT_TRUE(server_->port() != 0 && other_server_->port() != 0);
    writers_ = std::make_unique<Writers>(
        writers, std::vector<const ServerProcess*>{server_.get(), other_server_.get()});
    writers_->WaitForEach(20);
    writers_->Pause();
    EXPECT_GE(std::stoi(cluster_.Admin({"spread", cluster_.table(), "6"})), 6);
    writers_->Resume();
    pinger_ = std::make_unique<Pinger>(*server_);
  }

  // The writers whose next key lies on the region server: it sorts behind all that they wrote.
  static std::set<size_t> WritersOf(int region_server, const std::map<std::string, int>& owners) {
    std::set<size_t> writers;
    for (size_t writer = 0; writer < kWriters; ++writer) {
      const auto behind = owners.upper_bound(Writers::KeyPrefix(writer) + "~");
      if (behind != owners.begin() && std::prev(behind)->second == region_server)
        writers.insert(writer);
    }
    return writers;
  }

  // Kills region server and data node, looks at the writers for 70 s (40 s in the short form, which
  // is longer than the deadline of a request), and starts them. The writers pause while the test
  // prepares the next kill: a machine of two cores takes three times as long under their load.
  void KillServer(int number);
  // Kills the process for a while, during which it calls `meanwhile`, and expects each writer to go
  // on within `silence` of the start.
  void KillProcess(
      const std::string& name, seconds down, seconds silence,
      const std::function<void()>& meanwhile = [] {});

  // The flags of a server over the table of the test, with some more.
  std::vector<std::string> WithTable(std::vector<std::string> more) const {
    std::vector<std::string> flags = Cluster::ByQuorum();
    flags.push_back("--hbase-table=" + cluster_.table());
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }

  void ExpectNothingLost() {
    writers_->Stop();
    EXPECT_EQ(writers_->CountLost(*server_), 0u);
    EXPECT_EQ(writers_->CountLost(*other_server_), 0u);
  }

  Cluster cluster_{"nodes"};
  std::unique_ptr<ServerProcess> server_, other_server_;
  std::unique_ptr<Writers> writers_;
  std::unique_ptr<Pinger> pinger_;
};

void ClusterDeadNodesTest::KillServer(int number) {
  writers_->Pause();
  const std::set<size_t> concerned = WritersOf(number, cluster_.Share());
  EXPECT_FALSE(concerned.empty());
  writers_->Resume();
  writers_->WaitForEach(5);
  const std::string name = std::to_string(number);
  writers_->Restart();
  pinger_->TakeSlowest();
  ASSERT_TRUE(cluster_.Do({"kill", name}));
  std::this_thread::sleep_for(seconds(IsLongForm() ? 70 : 40));
  int64_t dead = 0, others = 0;
  for (size_t writer = 0; writer < kWriters; ++writer) {
    const WriterFigures figures = writers_->Figures(writer);
    const bool is_concerned = concerned.contains(writer);
    int64_t& slowest = is_concerned ? dead : others;
    slowest = std::max(slowest, Millis(figures.silence));
    // The deadline of the store, and the time that its answer takes.
    EXPECT_LE(Millis(figures.longest), 35'000) << figures.last_refusal;
    if (!is_concerned && IsLongForm()) EXPECT_EQ(figures.refused, 0u) << figures.last_refusal;
  }
  const int64_t ping = Millis(pinger_->TakeSlowest());
  fmt::print("server {} killed: its ranges silent for {} ms, others {} ms, PING {} ms\n", number,
             dead, others, ping);
  ExpectWithin(60'000, dead);
  ExpectWithin(2'000, others);
  ExpectWithin(50, ping);
  writers_->Pause();
  ASSERT_TRUE(cluster_.Do({"start", name}));
  writers_->Resume();
  writers_->WaitForEach(5);
}

void ClusterDeadNodesTest::KillProcess(const std::string& name, seconds down, seconds silence,
                                       const std::function<void()>& meanwhile) {
  writers_->WaitForEach(5);
  writers_->Restart();
  pinger_->TakeSlowest();
  ASSERT_TRUE(cluster_.Do({"kill", name}));
  const auto end = std::chrono::steady_clock::now() + down;
  meanwhile();
  std::this_thread::sleep_until(end);
  ASSERT_TRUE(cluster_.Do({"start", name}));
  // Region servers and the master end themselves where HDFS fails them, as a busy machine may have
  // it; whoever runs a cluster starts them again.
  ASSERT_TRUE(cluster_.Do({"up"}));
  writers_->WaitForEach(5);
  int64_t slowest = 0;
  uint64_t refused = 0;
  for (size_t writer = 0; writer < 4; ++writer) {
    slowest = std::max(slowest, Millis(writers_->Figures(writer).silence));
    refused += writers_->Figures(writer).refused;
  }
  const int64_t ping = Millis(pinger_->TakeSlowest());
  fmt::print("{} killed: writers silent for {} ms, {} refusals, PING {} ms\n", name, slowest,
             refused, ping);
  ExpectWithin(Millis(silence), slowest);
  ExpectWithin(50, ping);
}

TEST_F(ClusterDeadNodesTest, AKilledRegionServerLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(Begin(kWriters));
  for (int round = 0; round < (IsLongForm() ? 5 : 1); ++round) {
    ASSERT_NO_FATAL_FAILURE(KillServer(round % 3 + 1));
  }
  ExpectNothingLost();
}

// What holds no data stops nothing while it is away: regions stay where they are.
TEST_F(ClusterDeadNodesTest, AKilledMasterStopsNobody) {
  ASSERT_NO_FATAL_FAILURE(Begin(4));
  // A server waits for the master until this deadline.
  const auto impatient = cluster_.StartServer({"--store-deadline=10s"});
  ASSERT_NE(impatient->port(), 0);
  // Groups of a new delimiter have a table of their own, which the master makes.
  const auto create = [](const ServerProcess& server) {
    return ConnectTo(server)->Call({"NAMESPACE", "CREATE", "commas", "GROUP", ","}).status();
  };
  KillProcess("master", seconds(10), seconds(2), [&] {
    constexpr char kWhy[] = "the master of HBase, which checks and makes tables, cannot be asked";
    EXPECT_THAT(
        create(*impatient).message(),
        AllOf(HasSubstr("UNAVAILABLE HBase did not answer within the time that"), HasSubstr(kWhy)));
    EXPECT_THAT(
        cluster_.StartInVain(WithTable({"--store-deadline=5s"})),
        AllOf(HasSubstr("can't be opened: UNAVAILABLE: HBase did not answer"), HasSubstr(kWhy)));
  });
  const absl::Status created = create(*server_);
  EXPECT_TRUE(created.ok()) << created;
  ExpectNothingLost();
}

TEST_F(ClusterDeadNodesTest, AKilledZooKeeperStopsNobody) {
  ASSERT_NO_FATAL_FAILURE(Begin(4));
  KillProcess("zookeeper", seconds(6), seconds(2), [&] {
    EXPECT_THAT(cluster_.StartInVain(WithTable({})),
                AllOf(HasSubstr("can't be opened: UNAVAILABLE: no host of the ZooKeeper quorum "
                                "answers ("),
                      HasSubstr("--hbase-quorum")));
  });
  ExpectNothingLost();
}

TEST_F(ClusterDeadNodesTest, AKilledNameNodeLosesNothing) {
  ASSERT_NO_FATAL_FAILURE(Begin(4));
  KillProcess("namenode", seconds(10), seconds(60));
  ExpectNothingLost();
}

}  // namespace
}  // namespace varve::testing
