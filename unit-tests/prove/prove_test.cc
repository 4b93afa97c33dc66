// Short runs of what `make prove` does at length.
#include <gtest/gtest.h>

#include <cstdlib>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "unit-tests/prove/bit_flips.h"
#include "unit-tests/prove/failing_calls.h"
#include "unit-tests/prove/kill_cycles.h"
#include "unit-tests/prove/lost_machines.h"
#include "unit-tests/prove/power_cuts.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::prove {
namespace {

using testing::TempDir;

// Sanitizers slow the server down; how often it is ended is proven without them.
#if defined(VARVE_WATCHED_MEMORY)
constexpr uint64_t kKills = 15, kCuts = 6, kCalls = 2, kFlips = 10, kLosses = 4;
#else
constexpr uint64_t kKills = 100, kCuts = 30, kCalls = 6, kFlips = 60, kLosses = 16;
#endif

uint64_t RandomSeed() { return std::random_device{}(); }

TEST(ProveTest, AHundredKillsLoseNothing) {
  TempDir directory;
  const Figures figures = RunKillCycles({.server = VARVE_SERVER_MAIN,
                                         .directory = directory.path(),
                                         .cycles = kKills,
                                         .seed = RandomSeed()});
  EXPECT_EQ(figures.complaints.size(), 0u)
      << fmt::format("{}", fmt::join(figures.complaints, "\n"));
  EXPECT_EQ(figures.cycles, kKills);
  EXPECT_GT(figures.acknowledged, kKills);  // how many more is the disk's matter
  EXPECT_GT(figures.shown, 0u);
  EXPECT_EQ(figures.lost + figures.torn + figures.taken, 0u);
}

TEST(ProveTest, PowerCutsTakeNoMoreThanTheModeAllows) {
  TempDir directory;
  const absl::StatusOr<PowerFigures> figures = RunPowerCuts({.server = VARVE_SERVER_MAIN,
                                                             .directory = directory.path(),
                                                             .cycles = kCuts,
                                                             .seed = RandomSeed()});
  if (absl::IsUnavailable(figures.status())) GTEST_SKIP() << figures.status();
  ASSERT_TRUE(figures.ok()) << figures.status();
  for (const Figures* each : {&figures->always, &figures->every_second, &figures->none}) {
    EXPECT_EQ(each->complaints.size(), 0u) << fmt::format("{}", fmt::join(each->complaints, "\n"));
    EXPECT_EQ(each->cycles, kCuts / 3);
    EXPECT_EQ(each->lost + each->torn, 0u);
  }
  EXPECT_GT(figures->always.acknowledged, 0u);
  EXPECT_EQ(figures->always.taken, 0u);
  if (kCuts > 6) EXPECT_GT(figures->none.taken, 0u) << "of few cuts none may take anything";
}

TEST(ProveTest, ALostMachineComesBack) {
  TempDir directory;
  const LossFigures figures = RunLostMachines({.server = VARVE_SERVER_MAIN,
                                               .directory = directory.path(),
                                               .cycles = kLosses,
                                               .seed = RandomSeed()},
                                              VARVE_CLIENT_MAIN);
  for (const Figures* each : {&figures.archives, &figures.backups}) {
    EXPECT_EQ(each->complaints.size(), 0u) << fmt::format("{}", fmt::join(each->complaints, "\n"));
    EXPECT_EQ(each->cycles, kLosses / 2);
    EXPECT_EQ(each->lost + each->torn, 0u);
    EXPECT_GT(each->acknowledged, 0u);
  }
  EXPECT_EQ(figures.archives.taken, 0u);
}

TEST(ProveTest, NothingIsAcknowledgedAfterACallThatFailed) {
  TempDir directory;
  const absl::StatusOr<FailureFigures> failures = RunFailingCalls({.server = VARVE_SERVER_MAIN,
                                                                   .directory = directory.path(),
                                                                   .cycles = kCalls,
                                                                   .seed = RandomSeed(),
                                                                   .writers = 3});
  if (absl::IsUnavailable(failures.status())) GTEST_SKIP() << failures.status();
  ASSERT_TRUE(failures.ok()) << failures.status();
  const Figures& figures = failures->figures;
  EXPECT_EQ(figures.complaints.size(), 0u)
      << fmt::format("{}", fmt::join(figures.complaints, "\n"));
  EXPECT_EQ(figures.cycles, 3 * kCalls);
  EXPECT_EQ(figures.lost + figures.torn, 0u);
  EXPECT_GT(failures->failed_calls, 0u);
  if (kCalls > 2) EXPECT_GT(failures->refusing, 0u) << "of few calls none may be the log's";
  EXPECT_GT(failures->failed_starts, 0u);
}

TEST(ProveTest, EveryFlippedBitIsFoundOrHarmless) {
  TempDir directory;
  const absl::StatusOr<FlipFigures> figures = RunBitFlips({.server = VARVE_SERVER_MAIN,
                                                           .directory = directory.path(),
                                                           .cycles = kFlips,
                                                           .seed = RandomSeed()},
                                                          VARVE_CLIENT_MAIN);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->complaints.size(), 0u)
      << fmt::format("{}", fmt::join(figures->complaints, "\n"));
  EXPECT_EQ(figures->flips, kFlips);
  // Of few flips all may be harmless.
  if (kFlips > 32) EXPECT_GT(figures->refused + figures->reported, 0u);
  EXPECT_GE(figures->verified, figures->refused + figures->reported);
  EXPECT_GE(figures->files, 5u);
}

}  // namespace
}  // namespace varve::prove
