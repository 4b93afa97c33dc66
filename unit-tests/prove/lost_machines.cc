#include "unit-tests/prove/lost_machines.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/testing/server_process.h"

namespace varve::prove {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::Process;
using testing::ServerProcess;
using Words = std::vector<std::string>;

class LostMachines {
 public:
  LostMachines(const CycleOptions& options, const std::string& client_main)
      : options_(options),
        client_main_(client_main),
        data_(options.directory + "/data"),
        archive_(options.directory + "/archive"),
        backups_(options.directory + "/backups"),
        random_(options.seed),
        fleet_(options.writers, options.seed) {}

  LossFigures Run() {
    const auto begin = steady_clock::now();
    for (uint64_t cycle = 0; cycle < options_.cycles && is_good(); ++cycle) {
      if (options_.at_most.count() > 0 && steady_clock::now() - begin > options_.at_most) break;
      flags_ = SettingsOf(cycle, &random_);
      what_ = fmt::format("cycle {} (seed {}, {})", cycle, options_.seed, fmt::join(flags_, " "));
      const bool from_archive = cycle % 2 == 0;
      figures_ = from_archive ? &result_.archives : &result_.backups;
      from_archive ? LoseWithArchive() : LoseWithBackup();
      ++figures_->cycles;
    }
    return std::move(result_);
  }

 private:
  bool is_good() const {
    return result_.archives.complaints.empty() && result_.backups.complaints.empty();
  }
  void Complain(const std::string& complaint) {
    figures_->complaints.push_back(fmt::format("{}: {}", what_, complaint));
  }

  // Null: it does not start.
  std::unique_ptr<ServerProcess> Start() {
    const auto begin = steady_clock::now();
    auto server = std::make_unique<ServerProcess>(options_.server, data_, flags_);
    figures_->longest_start =
        std::max(figures_->longest_start,
                 std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin));
    if (server->port() != 0) return server;
    Complain("the server does not start: " + server->log());
    return nullptr;
  }

  // Returns whether the command ended with 0.
  bool Ends(const Words& words) {
    const std::string output = options_.directory + "/client.log";
    const int code = Process(client_main_, words, output).Wait();
    if (code != 0) {
      Complain(fmt::format("client_main {} ended with {}: {}", fmt::join(words, " "), code,
                           testing::ReadFile(output)));
    }
    return code == 0;
  }

  static Words At(uint16_t port, Words words) {
    words.insert(words.begin(), fmt::format("--port={}", port));
    return words;
  }

  void Kill(ServerProcess* server) {
    server->process().Kill(SIGKILL);
    server->process().Wait();
  }

  milliseconds Moment() { return milliseconds(5 + random_() % 250); }

  void LoseWithArchive() {
    if (!WriteUnderArchiver()) return;
    // The server comes back first, so that the archive has everything before the machine is lost.
    {
      const std::unique_ptr<ServerProcess> server = Start();
      if (server == nullptr) return;
      const bool is_archived = Ends(At(server->port(), {"archive", archive_, "--once"})) &&
                               Ends(At(server->port(), {"archive-check", archive_}));
      Kill(server.get());
      if (!is_archived) return;
    }
    ComeBackFrom(archive_, {});
  }

  // Archiver and server are killed while the fleet writes, in any order.
  bool WriteUnderArchiver() {
    const std::unique_ptr<ServerProcess> server = Start();
    if (server == nullptr) return false;
    Words words = {"archive", archive_, "--interval=20ms", "--base-every=1s", "--keep=1s"};
    std::optional<Process> archiver;
    const auto start = [&] {
      archiver.emplace(client_main_, At(server->port(), words), archive_ + ".log");
    };
    start();
    const absl::Status started = fleet_.Start(server->port(), RandomDepth(&random_));
    if (!started.ok()) {
      Complain(started.ToString());
      return false;
    }
    for (uint64_t kills = random_() % 3; kills > 0; --kills) {
      std::this_thread::sleep_for(Moment());
      archiver.reset();
      start();
    }
    std::this_thread::sleep_for(Moment());
    if (random_() % 2 == 0) archiver.reset();
    Kill(server.get());
    fleet_.Join();
    return true;
  }

  void LoseWithBackup() {
    const std::unique_ptr<ServerProcess> server = Start();
    if (server == nullptr) return;
    const absl::Status started = fleet_.Start(server->port(), RandomDepth(&random_));
    if (!started.ok()) return Complain(started.ToString());
    std::this_thread::sleep_for(Moment());
    // The first instant of which nothing is promised.
    const auto begin = steady_clock::now();
    const bool is_taken =
        Ends(At(server->port(), {"backup", backups_, "--incremental", "--keep=last=2"}));
    std::this_thread::sleep_for(Moment());
    Kill(server.get());
    fleet_.Join();
    if (!is_taken || !Ends({"verify", backups_})) return;
    ComeBackFrom(backups_, {.any = true, .age = milliseconds(1), .crash = begin});
  }

  void ComeBackFrom(const std::string& place, const Grace& grace) {
    fs::remove_all(data_);
    if (!Ends({"restore", place, data_}) || !Ends({"verify", data_})) return;
    const std::unique_ptr<ServerProcess> server = Start();
    if (server == nullptr) return;
    figures_->Add(fleet_.Check(server->port(), grace));
    if (!is_good()) Complain("what came back is not what was lost");
  }

  const CycleOptions options_;
  const std::string client_main_;
  const std::string data_;
  const std::string archive_;
  const std::string backups_;
  std::mt19937_64 random_;
  Fleet fleet_;
  Words flags_;       // of the server in this cycle
  std::string what_;  // the cycle, in words
  LossFigures result_;
  Figures* figures_ = nullptr;  // of this cycle's kind
};

}  // namespace

LossFigures RunLostMachines(const CycleOptions& options, const std::string& client_main) {
  return LostMachines(options, client_main).Run();
}

}  // namespace varve::prove
