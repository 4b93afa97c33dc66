// make prove: kills a fresh server, cuts its power, loses its disk, promotes its followers, fails
// its calls and flips its bits for about a minute, and says in one table what was acknowledged and
// what of it was lost. Exits with 1 when anything was.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "fmt/format.h"
#include "unit-tests/prove/bit_flips.h"
#include "unit-tests/prove/failing_calls.h"
#include "unit-tests/prove/failover/failover.h"
#include "unit-tests/prove/failover/follower.h"
#include "unit-tests/prove/kill_cycles.h"
#include "unit-tests/prove/lost_machines.h"
#include "unit-tests/prove/power_cuts.h"
#include "unit-tests/prove/report.h"
#include "unit-tests/testing/temp_dir.h"

ABSL_FLAG(int, seconds, 60, "how long, about; 0: as long as the counts take");
ABSL_FLAG(uint64_t, kills, 1'000'000, "cycles of kill -9, at most");
ABSL_FLAG(uint64_t, cuts, 1'000'000, "power cuts, at most");
ABSL_FLAG(uint64_t, losses, 1'000'000, "machines that are lost with their disks, at most");
ABSL_FLAG(uint64_t, failovers, 1'000'000, "promotions of a follower, at most");
ABSL_FLAG(uint64_t, calls, 1'000'000, "how many of each kind of call to fail, at most");
ABSL_FLAG(uint64_t, flips, 1'000'000, "bits to flip, at most");
ABSL_FLAG(uint64_t, seed, 0, "0: another one each time");
ABSL_FLAG(std::string, server, VARVE_SERVER_MAIN, "the server_main to test");

namespace varve::prove {
namespace {

// Of the time that there is, in percent.
constexpr int kKillShare = 20, kCutShare = 20, kLossShare = 15, kFailoverShare = 20,
              kCallShare = 15, kFlipShare = 10;

CycleOptions Options(const std::string& directory, uint64_t cycles, int percent, uint64_t seed) {
  CycleOptions options{.server = absl::GetFlag(FLAGS_server),
                       .directory = directory,
                       .cycles = cycles,
                       .seed = seed};
  const int seconds = absl::GetFlag(FLAGS_seconds);
  if (seconds > 0) options.at_most = std::chrono::seconds(std::max(1, seconds * percent / 100));
  return options;
}

// One half of the time goes to failovers with sync-replicas, a quarter to those without and a
// quarter to a follower without failovers.
void FailOver(uint64_t failovers, uint64_t seed, Report* report) {
  const auto run = [&](bool sync_replicas, int percent) {
    testing::TempDir directory;
    const CycleOptions options = Options(directory.path(), failovers, percent, seed);
    return RunFailovers({.server = options.server,
                         .directory = options.directory,
                         .seed = options.seed,
                         .failovers = options.cycles,
                         .at_most = options.at_most,
                         .sync_replicas = sync_replicas,
                         .own_keys = true});
  };
  const FailoverFigures with_sync = run(true, kFailoverShare / 2);
  report->AddFailovers(with_sync, run(false, kFailoverShare / 4));
  testing::TempDir directory;
  const CycleOptions options = Options(directory.path(), failovers, kFailoverShare / 4, seed);
  report->AddFollower(RunFollower({.server = options.server,
                                   .directory = options.directory,
                                   .seed = options.seed,
                                   .rounds = options.cycles,
                                   .at_most = options.at_most}));
}

int Main() {
  const uint64_t seed =
      absl::GetFlag(FLAGS_seed) != 0 ? absl::GetFlag(FLAGS_seed) : std::random_device{}();
  Report report;
  if (const uint64_t kills = absl::GetFlag(FLAGS_kills); kills > 0) {
    testing::TempDir directory;
    report.AddKills(RunKillCycles(Options(directory.path(), kills, kKillShare, seed)));
  }
  if (const uint64_t cuts = absl::GetFlag(FLAGS_cuts); cuts > 0) {
    testing::TempDir directory;
    report.AddCuts(RunPowerCuts(Options(directory.path(), cuts, kCutShare, seed)));
  }
  if (const uint64_t losses = absl::GetFlag(FLAGS_losses); losses > 0) {
    testing::TempDir directory;
    report.AddLosses(
        RunLostMachines(Options(directory.path(), losses, kLossShare, seed), VARVE_CLIENT_MAIN));
  }
  if (const uint64_t failovers = absl::GetFlag(FLAGS_failovers); failovers > 0)
    FailOver(failovers, seed, &report);
  if (const uint64_t calls = absl::GetFlag(FLAGS_calls); calls > 0) {
    testing::TempDir directory;
    report.AddCalls(RunFailingCalls(Options(directory.path(), calls, kCallShare, seed)));
  }
  if (const uint64_t flips = absl::GetFlag(FLAGS_flips); flips > 0) {
    testing::TempDir directory;
    report.AddFlips(
        RunBitFlips(Options(directory.path(), flips, kFlipShare, seed), VARVE_CLIENT_MAIN));
  }
  fmt::print("{}", report.Text());
  if (!report.good()) fmt::print("again: --seed={}\n", seed);
  return report.good() ? 0 : 1;
}

}  // namespace
}  // namespace varve::prove

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "kills a server again and again, and shows what of the acknowledged writes was lost");
  absl::ParseCommandLine(argc, argv);
  return varve::prove::Main();
}
