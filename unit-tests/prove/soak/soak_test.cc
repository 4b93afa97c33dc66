// Some seconds of what `make soak` does for an hour.
#include "unit-tests/prove/soak/soak.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "unit-tests/testing/process_memory.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::prove {
namespace {

SoakOptions OptionsOf(const testing::TempDir& directory) {
  return {.server = VARVE_SERVER_MAIN,
          .client = VARVE_CLIENT_MAIN,
          .directory = directory.path(),
          .load = std::chrono::seconds(5),
          .data_bytes = 24u << 20,
          .disk_limit = 256u << 20,
          .seed = std::random_device{}(),
          .memory_is_told = testing::kMemoryIsTold};
}

TEST(SoakTest, SomeSecondsOfEverythingAreWell) {
  testing::TempDir directory;
  const SoakOptions options = OptionsOf(directory);
  const SoakFigures figures = RunSoak(options);
  EXPECT_TRUE(figures.good()) << ReportOf(options, figures);
  EXPECT_GT(figures.requests, 0u);
  EXPECT_GT(figures.feed.commits, 0u);
  EXPECT_EQ(figures.copies.restored, 3u);
}

// Keys still expire, and requests are under way, when something else is found.
TEST(SoakTest, AFindingIsFollowedByNoneThatComesOfTheEndOfTheLoad) {
  testing::TempDir directory;
  SoakOptions options = OptionsOf(directory);
  options.load = std::chrono::seconds(60);
  options.gives_up = std::chrono::seconds(3);
  const SoakFigures figures = RunSoak(options);
  EXPECT_EQ(figures.findings, std::vector<std::string>{std::string(kGivenUp)})
      << ReportOf(options, figures);
  EXPECT_GT(figures.feed.expired, 0u);
  EXPECT_EQ(figures.copies.restored, 0u);
}

}  // namespace
}  // namespace varve::prove
