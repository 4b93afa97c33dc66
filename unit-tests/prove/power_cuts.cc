#include "unit-tests/prove/power_cuts.h"

#include <signal.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/cycle_settings.h"
#include "unit-tests/prove/loop_device.h"
#include "unit-tests/testing/server_process.h"
#include "util/base/status.h"

namespace varve::prove {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::ServerProcess;

class PowerCuts {
 public:
  PowerCuts(const CycleOptions& options, std::unique_ptr<LoopDevice> device)
      : options_(options),
        device_(std::move(device)),
        random_(options.seed),
        fleet_(options.writers, options.seed),
        figures_{&result_.always, &result_.every_second, &result_.none} {}

  absl::StatusOr<PowerFigures> Run() {
    const auto begin = steady_clock::now();
    for (uint64_t cycle = 0; cycle < options_.cycles; ++cycle) {
      if (options_.at_most.count() > 0 && steady_clock::now() - begin > options_.at_most) break;
      VARVE_RETURN_IF_ERROR(Cycle(cycle));
      if (!figures_[cycle % 3]->complaints.empty()) break;
    }
    return std::move(result_);
  }

 private:
  absl::Status Cycle(uint64_t cycle) {
    Figures& figures = *figures_[cycle % 3];
    const std::vector<std::string> flags = SettingsOf(cycle, &random_);
    const std::string what =
        fmt::format("cycle {} (seed {}, {})", cycle, options_.seed, fmt::join(flags, " "));
    Grace grace;
    {
      ServerProcess server(options_.server, device_->path() + "/data", flags);
      if (server.port() == 0)
        return Complain(&figures, what + ": the server does not start: " + server.log());
      VARVE_RETURN_IF_ERROR(
          fleet_.Start(server.port(), RandomDepth(&random_), ModeOf(cycle) != "always"));
      const bool long_enough_for_a_sync = ModeOf(cycle) == "everysec" && random_() % 5 == 0;
      std::this_thread::sleep_for(
          milliseconds((long_enough_for_a_sync ? 2700 : 5) + random_() % 400));
      fleet_.StopWatching();
      grace = {.any = ModeOf(cycle) != "always",
               .age = ModeOf(cycle) == "everysec" ? kEverySecondPromise : milliseconds(0),
               .crash = steady_clock::now()};
      VARVE_RETURN_IF_ERROR(device_->CutPower(RandomCut()));
      grace.settled = steady_clock::now();
      // A moment in which it could acknowledge what is not on the disk.
      std::this_thread::sleep_for(milliseconds(random_() % 20));
      server.process().Kill(SIGKILL);
      server.process().Wait();
      fleet_.Join();
    }
    VARVE_RETURN_IF_ERROR(device_->Remount());
    if (random_() % 6 == 0) VARVE_RETURN_IF_ERROR(CutWhileRecovering(flags));

    const auto begin = steady_clock::now();
    ServerProcess server(options_.server, device_->path() + "/data", flags);
    if (server.port() == 0)
      return Complain(&figures, what + ": the server does not start again: " + server.log());
    const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    Figures found = fleet_.Check(server.port(), grace);
    found.longest_start = took;
    found.cycles = 1;
    figures.Add(found);
    if (!found.complaints.empty()) return Complain(&figures, what);
    server.process().Kill(SIGTERM);
    if (server.process().Wait() != 0)
      return Complain(&figures, what + ": no clean end: " + server.log());
    return absl::OkStatus();
  }

  absl::Status CutWhileRecovering(const std::vector<std::string>& flags) {
    {
      std::vector<std::string> arguments = flags;
      arguments.insert(arguments.begin(),
                       {"--dir=" + device_->path() + "/data", "--port=0", "--http-port=0"});
      testing::Process process(options_.server, arguments, options_.directory + "/start.log");
      std::this_thread::sleep_for(milliseconds(random_() % 60));
      VARVE_RETURN_IF_ERROR(device_->CutPower(RandomCut()));
    }
    return device_->Remount();
  }

  LoopDevice::Cut RandomCut() {
    const uint64_t kind = random_() % 20;
    return kind == 0  ? LoopDevice::Cut::kEverything
           : kind < 5 ? LoopDevice::Cut::kJournal
                      : LoopDevice::Cut::kNothing;
  }

  static absl::Status Complain(Figures* figures, std::string complaint) {
    figures->complaints.push_back(std::move(complaint));
    return absl::OkStatus();
  }

  const CycleOptions options_;
  const std::unique_ptr<LoopDevice> device_;
  std::mt19937_64 random_;
  Fleet fleet_;
  PowerFigures result_;
  Figures* const figures_[3];
};

}  // namespace

absl::StatusOr<PowerFigures> RunPowerCuts(const CycleOptions& options) {
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<LoopDevice> device, LoopDevice::Mount(options.directory));
  return PowerCuts(options, std::move(device)).Run();
}

}  // namespace varve::prove
