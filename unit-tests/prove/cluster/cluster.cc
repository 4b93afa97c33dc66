#include "unit-tests/prove/cluster/cluster.h"

#include <cstdlib>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace varve::testing {
namespace {

constexpr size_t kRowPrefix = 4;  // bytes before the user key, see db/hbase/row_codec.h

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Script() { return std::string(VARVE_SOURCE_DIR) + "/scripts/hbase_cluster.sh"; }

}  // namespace

std::vector<std::string> Cluster::ByQuorum() {
  return {"--store=hbase", Variable("VARVE_CLUSTER_QUORUM")};
}

std::vector<std::string> Cluster::ByMasters() {
  return {"--store=hbase", "--hbase-masters=" + Variable("HBASE_TEST_MASTERS")};
}

std::string Cluster::StartInVain(std::vector<std::string> flags) {
  ServerProcess server(VARVE_SERVER_MAIN, directory_.File("server" + std::to_string(++servers_)),
                       std::move(flags));
  if (server.port() != 0) {
    ADD_FAILURE() << "the server has come up: " << server.log();
  } else {
    EXPECT_EQ(server.process().Wait(), 1) << server.log();
  }
  return server.log();
}

std::unique_ptr<ServerProcess> Cluster::StartServer(std::vector<std::string> flags) {
  const std::vector<std::string> cluster = ByQuorum();
  flags.insert(flags.begin(), "--hbase-table=" + table_);
  flags.insert(flags.begin(), cluster.begin(), cluster.end());
  // A cluster some of whose processes were killed needs a while to make tables again, and those end
  // themselves that were not answered for too long; whoever runs a cluster starts them again.
  constexpr int kTries = 6;
  for (int tries = 1;; ++tries) {
    auto server = std::make_unique<ServerProcess>(
        VARVE_SERVER_MAIN, directory_.File("server" + std::to_string(++servers_)), flags);
    if (server->port() != 0) return server;
    if (tries < kTries && Do({"up"})) continue;
    ADD_FAILURE() << server->log();
    return server;
  }
}

bool Cluster::Do(const std::vector<std::string>& command) {
  Process process(Script(), command);
  return process.Wait() == 0;
}

std::string Cluster::Admin(const std::vector<std::string>& command) {
  std::vector<std::string> arguments = {"java", "ClusterAdmin"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  const std::string output = directory_.File("output" + std::to_string(++outputs_));
  Process process(Script(), arguments, output);
  EXPECT_EQ(process.Wait(), 0) << command.front() << ": " << ReadFile(output);
  return ReadFile(output);
}

std::map<std::string, int> Cluster::Share() {
  std::map<std::string, int> owners;
  std::istringstream lines(Admin({"share", table_}));
  int server = 0;
  for (std::string row; lines >> server >> row;) {
    const std::string bytes(absl::HexStringToBytes(row));
    if (bytes.size() > kRowPrefix) owners[bytes.substr(kRowPrefix)] = server;
  }
  return owners;
}

std::unique_ptr<Client> ConnectTo(const ServerProcess& server, std::chrono::seconds timeout) {
  auto client = Client::Connect("127.0.0.1", server.port(), timeout);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

bool IsLongForm() { return !Variable("VARVE_CLUSTER_LONG").empty(); }

}  // namespace varve::testing
