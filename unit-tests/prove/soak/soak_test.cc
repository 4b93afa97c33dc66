// Some seconds of what `make soak` does for an hour.
#include "unit-tests/prove/soak/soak.h"

#include <gtest/gtest.h>

#include <random>

#include "unit-tests/testing/process_memory.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::prove {
namespace {

TEST(SoakTest, SomeSecondsOfEverythingAreWell) {
  testing::TempDir directory;
  const SoakOptions options{.server = VARVE_SERVER_MAIN,
                            .client = VARVE_CLIENT_MAIN,
                            .directory = directory.path(),
                            .load = std::chrono::seconds(5),
                            .data_bytes = 24u << 20,
                            .disk_limit = 256u << 20,
                            .seed = std::random_device{}(),
                            .memory_is_told = testing::kMemoryIsTold};
  const SoakFigures figures = RunSoak(options);
  EXPECT_TRUE(figures.good()) << ReportOf(options, figures);
  EXPECT_GT(figures.requests, 0u);
  EXPECT_GT(figures.feed.commits, 0u);
  EXPECT_EQ(figures.copies.restored, 3u);
}

}  // namespace
}  // namespace varve::prove
