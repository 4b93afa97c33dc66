// Crash states in any number, by hand (docs/durability.md). Exits with 1 at the first state that is
// not good, and says how to see it again.
#include <cstdio>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "unit-tests/crash/crash_states.h"

ABSL_FLAG(uint64_t, states, 100'000, "distinct crash states to look at");
ABSL_FLAG(uint64_t, seed, 1, "seed of the first run; each further run has the next one");
ABSL_FLAG(int, steps, 120, "things done to the store in each run");
ABSL_FLAG(int64_t, index, -1, "look at this one state of the seed alone");
ABSL_FLAG(uint64_t, states_per_run, 10'000, "distinct states after which the next run begins");
ABSL_FLAG(uint64_t, changes, 0, "with --index: print so many changes of the disk before the crash");
ABSL_FLAG(bool, log, false, "print what the store logs");

namespace varve::testing {
namespace {

int Fail(uint64_t seed, const absl::Status& status) {
  fmt::print(stderr, "seed {}: {}\n", seed, status.ToString());
  return 1;
}

int Run() {
  if (!absl::GetFlag(FLAGS_log)) spdlog::set_level(spdlog::level::off);
  const int steps = absl::GetFlag(FLAGS_steps);
  uint64_t seed = absl::GetFlag(FLAGS_seed);
  if (const int64_t index = absl::GetFlag(FLAGS_index); index >= 0) {
    CrashStates states(seed, steps);
    if (!states.status().ok()) return Fail(seed, states.status());
    fmt::print("{}", states.Describe(static_cast<uint64_t>(index), absl::GetFlag(FLAGS_changes)));
    if (const absl::Status status = states.Check(static_cast<uint64_t>(index)); !status.ok())
      return Fail(seed, status);
    fmt::print("state {} of seed {} (run {:016x}): good\n", index, seed, states.Fingerprint());
    return 0;
  }
  const absl::Time begun = absl::Now();
  CrashStates::Counts counts;
  uint64_t runs = 0, changes = 0;
  for (; counts.distinct < absl::GetFlag(FLAGS_states); ++seed, ++runs) {
    CrashStates states(seed, steps);
    if (!states.status().ok()) return Fail(seed, states.status());
    changes += states.trace().size();
    const uint64_t most = std::min(absl::GetFlag(FLAGS_states) - counts.distinct,
                                   absl::GetFlag(FLAGS_states_per_run));
    if (const absl::Status status = states.CheckAll(most, &counts); !status.ok())
      return Fail(seed, status);
  }
  fmt::print(
      "{} distinct crash states of {} runs ({} changes), {} of them by kill; {} more by crashes of "
      "recovery; "
      "{:.1f} s; all good\n",
      counts.distinct, runs, changes, counts.kills, counts.in_recovery,
      absl::ToDoubleSeconds(absl::Now() - begun));
  return 0;
}

}  // namespace
}  // namespace varve::testing

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("opens a store in every state that a crash could leave");
  absl::ParseCommandLine(argc, argv);
  return varve::testing::Run();
}
