#include "unit-tests/prove/kill_cycles.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/testing/server_process.h"

namespace varve::prove {
namespace {

using std::chrono::milliseconds;
using testing::ServerProcess;

class KillCycles {
 public:
  explicit KillCycles(const CycleOptions& options)
      : options_(options), random_(options.seed), fleet_(options.writers, options.seed) {}

  Figures Run() {
    const auto begin = std::chrono::steady_clock::now();
    for (uint64_t cycle = 0; cycle < options_.cycles && figures_.complaints.empty(); ++cycle) {
      if (options_.at_most.count() > 0 &&
          std::chrono::steady_clock::now() - begin > options_.at_most)
        break;
      Cycle(cycle);
      ++figures_.cycles;
    }
    if (figures_.complaints.empty()) StartAndCheck(SettingsOf(0, &random_), "at the end");
    return std::move(figures_);
  }

 private:
  void Complain(std::string complaint) { figures_.complaints.push_back(std::move(complaint)); }

  // Null: something was wrong.
  std::unique_ptr<ServerProcess> StartAndCheck(const std::vector<std::string>& flags,
                                               const std::string& what) {
    const auto begin = std::chrono::steady_clock::now();
    auto server =
        std::make_unique<ServerProcess>(options_.server, options_.directory + "/data", flags);
    const auto took =
        std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    figures_.longest_start = std::max(figures_.longest_start, took);
    if (server->port() == 0) {
      Complain(what + ": the server does not start: " + server->log());
      return nullptr;
    }
    figures_.Add(fleet_.Check(server->port()));
    if (figures_.complaints.empty()) return server;
    Complain(what);
    return nullptr;
  }

  void Cycle(uint64_t cycle) {
    const std::vector<std::string> flags = SettingsOf(cycle, &random_);
    const std::string what =
        fmt::format("cycle {} (seed {}, {})", cycle, options_.seed, fmt::join(flags, " "));
    if (random_() % 8 == 0) KillWhileStarting(flags);
    const std::unique_ptr<ServerProcess> server = StartAndCheck(flags, what);
    if (server == nullptr) return;
    const absl::Status started = fleet_.Start(server->port(), RandomDepth(&random_));
    if (!started.ok()) return Complain(what + ": " + started.ToString());
    std::this_thread::sleep_for(milliseconds(5 + random_() % 250));
    const bool politely = random_() % 12 == 0;
    server->process().Kill(politely ? SIGTERM : SIGKILL);
    const int code = server->process().Wait();
    fleet_.Join();
    if (code != (politely ? 0 : 1000 + SIGKILL))
      Complain(fmt::format("{}: ended with {}: {}", what, code, server->log()));
  }

  void KillWhileStarting(const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = flags;
    arguments.insert(arguments.begin(),
                     {"--dir=" + options_.directory + "/data", "--port=0", "--http-port=0"});
    testing::Process process(options_.server, arguments, options_.directory + "/start.log");
    std::this_thread::sleep_for(milliseconds(random_() % 60));
  }

  const CycleOptions options_;
  std::mt19937_64 random_;
  Fleet fleet_;
  Figures figures_;
};

}  // namespace

Figures RunKillCycles(const CycleOptions& options) { return KillCycles(options).Run(); }

}  // namespace varve::prove
