#include "util/os/pacer.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(PacerTest, APauseFollowsAStepUnlessSomebodyWaits) {
  constexpr Pacer kPacer(1000, absl::Hours(1));
  EXPECT_EQ(kPacer.step_bytes(), 1000u);
  const SteadyTime before = SteadyNow();
  EXPECT_GE(kPacer.NextStep(), before + absl::Hours(1));
  EXPECT_LT(kPacer.NextStep(/*is_awaited=*/true), before + absl::Hours(1));
}

}  // namespace
}  // namespace varve
