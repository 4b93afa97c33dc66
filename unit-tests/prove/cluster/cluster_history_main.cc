// cluster_history_main SERVER_MAIN DIRECTORY SEED [KILLS]: prints what the clients of two servers
// over one cluster see of keys and of groups that they share, while one of the servers is killed
// and started again; for linearizability/check.go, which says how the lines read. A group is a
// register: all of its keys are written together, and are read together.
//
// VARVE_CLUSTER_QUORUM names the cluster, as `hbase_cluster.sh up` printed it.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/prove/caller.h"
#include "unit-tests/prove/cluster/group_caller.h"
#include "unit-tests/testing/server_process.h"

namespace varve::prove {
namespace {

using testing::ServerProcess;

constexpr size_t kKeys = 6;
constexpr size_t kGroups = 3;
constexpr size_t kCallers = 3;  // of each kind at each server
// A request that a server sent before it died may wait in a region server for so long.
constexpr int64_t kInFlightNanos = 10'000'000'000;

// The callers at one server. They outlive it, as their operations go on at the next one.
struct CallersOfServer {
  std::deque<Caller> callers;
  std::deque<GroupCaller> group_callers;
};

class Recorder {
 public:
  Recorder(std::string server, std::string directory, uint64_t seed)
      : server_(std::move(server)), directory_(std::move(directory)), table_(TableName(seed)) {
    for (size_t i = 0; i < 2 * kCallers; ++i) {
      CallersOfServer& callers = callers_[i % 2];
      callers.callers.emplace_back(i, seed, &seen_);
      callers.group_callers.emplace_back(100 + i, seed, kGroups);
    }
  }

  // False: what is no history was printed to standard error.
  bool Record(int kills) {
    std::unique_ptr<ServerProcess> killed = Start(0), other = Start(1);
    if (killed->port() == 0 || other->port() == 0) return false;
    if (!CreateNamespace(*other)) return false;
    std::vector<std::thread> others = Run(&callers_[1], *other);
    for (int life = 0; life <= kills && is_fine_; ++life) {
      if (life > 0) killed = Start(0);
      std::vector<std::thread> threads = Run(&callers_[0], *killed);
      std::this_thread::sleep_for(std::chrono::milliseconds(1500 + 500 * (life % 3)));
      Kill(killed.get(), &callers_[0], &threads);
    }
    Kill(other.get(), &callers_[1], &others);
    return is_fine_;
  }

  void Print() const {
    std::vector<std::string> lines;
    for (const CallersOfServer& callers : callers_) {
      for (const Caller& caller : callers.callers) caller.Write(&lines);
      for (const GroupCaller& caller : callers.group_callers) caller.Write(&lines);
    }
    for (const std::string& line : lines) fmt::print("{}\n", line);
  }

 private:
  static std::string TableName(uint64_t seed) {
    return fmt::format("history{}-{}", getpid(), seed);
  }

  std::unique_ptr<ServerProcess> Start(int number) {
    const char* const quorum = std::getenv("VARVE_CLUSTER_QUORUM");
    auto server = std::make_unique<ServerProcess>(
        server_, fmt::format("{}/server{}", directory_, number),
        std::vector<std::string>{"--store=hbase", quorum == nullptr ? "" : quorum,
                                 "--hbase-table=" + table_});
    if (server->port() == 0) Complain("the server does not start: " + server->log());
    return server;
  }

  bool CreateNamespace(const ServerProcess& server) {
    auto client = Connect(server);
    if (client == nullptr) return false;
    const auto reply = client->Call({"NAMESPACE", "CREATE", GroupCaller::kNamespace, "GROUP", ":"});
    if (!reply.ok()) Complain(reply.status().ToString());
    return reply.ok();
  }

  std::unique_ptr<Client> Connect(const ServerProcess& server) {
    auto client = Client::Connect("127.0.0.1", server.port(), std::chrono::seconds(60));
    if (!client.ok()) Complain(client.status().ToString());
    return client.ok() ? *std::move(client) : nullptr;
  }

  std::vector<std::thread> Run(CallersOfServer* callers, const ServerProcess& server) {
    std::vector<std::thread> threads;
    const auto run = [&](auto* caller) {
      std::shared_ptr<Client> client = Connect(server);
      if (client == nullptr) return;
      threads.emplace_back([this, caller, client] {
        const absl::Status status = caller->Run(client.get());
        if (!status.ok()) Complain(status.ToString());
      });
    };
    for (Caller& caller : callers->callers) run(&caller);
    for (GroupCaller& caller : callers->group_callers) run(&caller);
    return threads;
  }

  void Kill(ServerProcess* server, CallersOfServer* callers, std::vector<std::thread>* threads) {
    server->process().Kill(SIGKILL);
    server->process().Wait();
    const int64_t death = HistoryNow() + kInFlightNanos;
    for (std::thread& thread : *threads) thread.join();
    for (Caller& caller : callers->callers) caller.Died(death);
    for (GroupCaller& caller : callers->group_callers) caller.Died(death);
  }

  void Complain(const std::string& complaint) {
    fmt::print(stderr, "{}\n", complaint);
    is_fine_ = false;
  }

  const std::string server_, directory_, table_;
  LastSeen seen_{kKeys};
  CallersOfServer callers_[2];
  std::atomic<bool> is_fine_{true};
};

}  // namespace
}  // namespace varve::prove

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "cluster_history_main SERVER_MAIN DIRECTORY SEED [KILLS]\n");
    return 2;
  }
  varve::prove::Recorder recorder(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10));
  if (!recorder.Record(argc > 4 ? std::atoi(argv[4]) : 6)) return 2;
  recorder.Print();
  return 0;
}
