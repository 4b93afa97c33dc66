// Servers find the cluster by its ZooKeeper and by its masters, and end with a message where one of
// its tables will not do.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "unit-tests/prove/cluster/cluster.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Flags = std::vector<std::string>;

Flags With(Flags flags, const Flags& others) {
  flags.insert(flags.end(), others.begin(), others.end());
  return flags;
}

class ClusterStartTest : public ::testing::Test {
 protected:
  // Tests before this one may have killed some of it.
  void SetUp() override { ASSERT_TRUE(cluster_.Do({"up"})); }

  Cluster cluster_{"starts"};
};

TEST_F(ClusterStartTest, ServersByMastersAndByQuorumShareTheirKeys) {
  const std::unique_ptr<ServerProcess> by_quorum = cluster_.StartServer();
  ASSERT_NE(by_quorum->port(), 0);
  const TempDir directory;
  ServerProcess by_masters(VARVE_SERVER_MAIN, directory.File("server"),
                           With(Cluster::ByMasters(), {"--hbase-table=" + cluster_.table()}));
  ASSERT_NE(by_masters.port(), 0) << by_masters.log();
  EXPECT_EQ(ConnectTo(*by_quorum)->Put("k", "v"), absl::OkStatus());
  const auto value = ConnectTo(by_masters)->Get("k");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(value->value_or("(missing)"), "v");
}

TEST_F(ClusterStartTest, ATableOfAnotherProgramIsRefused) {
  const std::string table = cluster_.table() + "-foreign";
  cluster_.Admin({"make", table, "f"});
  for (const Flags& cluster : {Cluster::ByQuorum(), Cluster::ByMasters()}) {
    EXPECT_THAT(
        cluster_.StartInVain(With(cluster, {"--hbase-table=" + table})),
        AllOf(HasSubstr("The store in table " + table + " of the HBase cluster at "),
              HasSubstr("can't be opened: FAILED_PRECONDITION: HBase's table '" + table +
                        "' is not one that Varve can use: it takes one column family, 'v'")));
  }
}

TEST_F(ClusterStartTest, ATableThatIsMissingIsNotMadeWhereItMayNotBe) {
  const std::string table = cluster_.table() + "-missing";
  // The second one finds that the first one has made nothing.
  for (const Flags& cluster : {Cluster::ByQuorum(), Cluster::ByMasters()}) {
    EXPECT_THAT(
        cluster_.StartInVain(With(cluster, {"--hbase-table=" + table, "--hbase-create=no"})),
        AllOf(HasSubstr("can't be opened: NOT_FOUND: HBase has no table '" + table + "'"),
              HasSubstr("--hbase-create=no")));
  }
}

}  // namespace
}  // namespace varve::testing
