// A running cluster of HBase, as scripts/hbase_cluster.sh runs it, for tests of servers over it:
// ends and starts its processes, and splits and moves the regions of tables.
//
// Thread-safety: One thread at a time uses a cluster.
// Requires: VARVE_CLUSTER_QUORUM is set to what `hbase_cluster.sh up` printed,
// HBASE_TEST_MASTERS to the address of its master, and VARVE_CLUSTER_CLASSES to the folder of
// the compiled ClusterAdmin (run.sh does all three).
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {

class Cluster {
 public:
  // The names of all tables of the test begin with `table`. Tests of one fixture share it, and no
  // two fixtures have the same.
  explicit Cluster(std::string table) : table_(std::move(table)) {}

  const std::string& table() const { return table_; }

  // Starts another server over the cluster. Fails the test where it does not come up.
  std::unique_ptr<ServerProcess> StartServer(std::vector<std::string> flags = {});

  // Starts a server that cannot serve, with these flags alone. Fails the test where the server does
  // not end by itself, with exit code 1. Returns what it said.
  std::string StartInVain(std::vector<std::string> flags);
  // The flags that say where the cluster is: its ZooKeeper, or its master.
  static std::vector<std::string> ByQuorum();
  static std::vector<std::string> ByMasters();

  // Runs a command of hbase_cluster.sh, and returns whether it succeeded.
  bool Do(const std::vector<std::string>& command);
  // Runs a command of ClusterAdmin, and returns what it printed. Fails the test where that fails.
  std::string Admin(const std::vector<std::string>& command);
  // Gives each region server its share of the main table's regions. Returns, by the first user key
  // of each region that holds keys, the number of the region server that has the region.
  std::map<std::string, int> Share();

 private:
  const std::string table_;
  TempDir directory_;
  int servers_ = 0;
  int outputs_ = 0;
};

// A client with a connection of its own, on which no reply takes more than `timeout`.
std::unique_ptr<Client> ConnectTo(const ServerProcess& server,
                                  std::chrono::seconds timeout = std::chrono::seconds(90));

// Returns whether the long form of the tests runs (VARVE_CLUSTER_LONG).
bool IsLongForm();

}  // namespace varve::testing
