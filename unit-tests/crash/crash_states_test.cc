// What a crash could leave, thousands of times. VARVE_CRASH_STATES sets how many states are looked
// at; the sanitizers, which take ten times as long, look at a tenth.
#include "unit-tests/crash/crash_states.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <string>

#include "spdlog/spdlog.h"

namespace varve::testing {
namespace {

constexpr int kSteps = 120;
constexpr uint64_t kStatesPerRun = 625;

#if defined(VARVE_SANITIZED)
constexpr uint64_t kStates = 500;
#elif defined(NDEBUG)
constexpr uint64_t kStates = 5'000;
#else
constexpr uint64_t kStates = 1'000;
#endif

uint64_t WantedStates() {
  const char* const text = getenv("VARVE_CRASH_STATES");
  return text == nullptr ? kStates : strtoull(text, nullptr, 10);
}

class CrashStatesTest : public ::testing::Test {
 protected:
  // What stores have to say of thousands of crashes is of no interest.
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
  void TearDown() override { spdlog::set_level(spdlog::level::info); }
};

TEST_F(CrashStatesTest, EveryStateOfEveryRunIsGood) {
  CrashStates::Counts counts;
  const uint64_t wanted = WantedStates();
  for (uint64_t seed = 1; counts.distinct < wanted; ++seed) {
    CrashStates states(seed, kSteps);
    ASSERT_TRUE(states.status().ok()) << "seed " << seed << ": " << states.status();
    const absl::Status status =
        states.CheckAll(std::min(kStatesPerRun, wanted - counts.distinct), &counts);
    ASSERT_TRUE(status.ok()) << status << "\nagain: crash_states_main --seed=" << seed
                             << " --index=...";
  }
  RecordProperty("distinct_states", std::to_string(counts.distinct));
  RecordProperty("states_of_recoveries", std::to_string(counts.in_recovery));
  EXPECT_GE(counts.distinct, wanted);
  EXPECT_GT(counts.kills, 0u);
  EXPECT_GT(counts.in_recovery, wanted / 4);
}

// What is not in the runs is not tried.
TEST_F(CrashStatesTest, RunsHoldEverythingThatAStoreIsToSurvive) {
  std::map<std::string, uint64_t> done;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const CrashStates states(seed, kSteps);
    for (const auto& [what, times] : states.done()) done[what] += times;
  }
  for (const std::string what :
       {"keys removed", "clock marks", "merges", "changes of namespaces", "refused for a quota",
        "transactions", "transactions refused", "conflicts", "ingests", "changes of metadata",
        "keys undeleted", "clones of the past", "namespaces undropped", "changes read",
        "places of a feed", "histories"}) {
    EXPECT_GE(done[what], 8u) << what;
    RecordProperty(what, std::to_string(done[what]));
  }
}

TEST_F(CrashStatesTest, ASeedRepeatsItsRunToTheLetter) {
  for (const uint64_t seed : {7, 8, 9}) {
    const CrashStates first(seed, kSteps), second(seed, kSteps), shorter(seed, kSteps / 2);
    ASSERT_TRUE(first.status().ok()) << first.status();
    EXPECT_GT(first.trace().size(), 400u);
    EXPECT_EQ(first.Fingerprint(), second.Fingerprint());
    EXPECT_NE(first.Fingerprint(), shorter.Fingerprint());
  }
}

TEST_F(CrashStatesTest, SeedsInterleaveTheThreadsDifferently) {
  const CrashStates first(7, kSteps), other(8, kSteps);
  EXPECT_NE(first.Fingerprint(), other.Fingerprint());
}

}  // namespace
}  // namespace varve::testing
