// Short runs of failovers and of a follower, and the proxy that cuts their links.
#include "unit-tests/prove/failover/failover.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "client/client.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/failover/follower.h"
#include "unit-tests/prove/failover/servers.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::prove {
namespace {

using testing::TempDir;

#if defined(VARVE_WATCHED_MEMORY)
constexpr uint64_t kFailovers = 2, kRounds = 2;
#else
constexpr uint64_t kFailovers = 5, kRounds = 4;
#endif

uint64_t RandomSeed() { return std::random_device{}(); }

FailoverFigures FiguresOf(const TempDir& directory, bool sync_replicas, bool own_keys) {
  return RunFailovers({.server = VARVE_SERVER_MAIN,
                       .directory = directory.path(),
                       .seed = RandomSeed(),
                       .failovers = kFailovers,
                       .sync_replicas = sync_replicas,
                       .own_keys = own_keys});
}

void ExpectGood(const FailoverFigures& figures) {
  EXPECT_EQ(figures.complaints.size(), 0u)
      << fmt::format("{}", fmt::join(figures.complaints, "\n"));
  EXPECT_EQ(figures.failovers, kFailovers);
  EXPECT_GT(figures.acknowledged, kFailovers);
  EXPECT_EQ(figures.gaps.size(), kFailovers);
}

TEST(FailoverTest, WithSyncReplicasNothingAcknowledgedIsLost) {
  TempDir directory;
  const FailoverFigures figures = FiguresOf(directory, /*sync_replicas=*/true, /*own_keys=*/true);
  ExpectGood(figures);
  EXPECT_EQ(figures.diverged, 0u);
}

TEST(FailoverTest, ClientsThatShareKeysAreServedOverFailovers) {
  TempDir directory;
  const FailoverFigures figures = FiguresOf(directory, /*sync_replicas=*/true, /*own_keys=*/false);
  ExpectGood(figures);
  EXPECT_GT(figures.reads, 0u);
}

TEST(FailoverTest, WithoutSyncReplicasWhatIsLostIsInTheDivergedFiles) {
  TempDir directory;
  ExpectGood(FiguresOf(directory, /*sync_replicas=*/false, /*own_keys=*/true));
}

TEST(FollowerTest, AFollowerIsItsPrimaryAtItsVersion) {
  TempDir directory;
  const FollowerFigures figures = RunFollower({.server = VARVE_SERVER_MAIN,
                                               .directory = directory.path(),
                                               .seed = RandomSeed(),
                                               .rounds = kRounds});
  EXPECT_EQ(figures.complaints.size(), 0u)
      << fmt::format("{}", fmt::join(figures.complaints, "\n"));
  EXPECT_EQ(figures.rounds, kRounds);
  EXPECT_GE(figures.kills, kRounds);
  EXPECT_GT(figures.compared, 0u);
  EXPECT_GT(figures.acknowledged, 0u);
}

TEST(ProxyTest, ALinkIsCutStalledAndRestored) {
  TempDir directory;
  Servers servers(VARVE_SERVER_MAIN, directory.path(), 1, {});
  ASSERT_TRUE(servers.Start(0).ok());
  Proxy& link = servers.Clients(0);
  auto client = Client::Connect("127.0.0.1", link.port());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Put("a", "1").ok());

  link.Stall();
  ASSERT_TRUE((*client)->Send({"SET", "a", "2"}).ok());
  (*client)->pipeline().Flush();
  EXPECT_EQ(servers.Ask(0, {"GET", "a"}), "1") << "nothing goes through";
  link.Restore();
  const absl::StatusOr<Reply> reply = (*client)->Receive();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(servers.Ask(0, {"GET", "a"}), "2");

  link.Cut();
  EXPECT_FALSE((*client)->Put("a", "3").ok());
  link.Restore();
  EXPECT_TRUE(absl::IsUnavailable((*client)->Ping())) << "it was closed";
  auto again = Client::Connect("127.0.0.1", link.port());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(**(*again)->Get("a"), "2");
}

}  // namespace
}  // namespace varve::prove
