// The lineage of stores: up to which version two of them are the same.
#include "server/replication/lineage.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(LineageTest, AFollowerHasWhatItHasOfItsPrimary) {
  const Lineage primary{.current = 1, .newest = 100};
  EXPECT_EQ(CommonVersion(primary, {.current = 1, .newest = 40}), 40u);
  EXPECT_EQ(CommonVersion(primary, {.current = 2, .newest = 40}), std::nullopt);
}

TEST(LineageTest, AfterAPromotionTheForkIsWhatTheyHaveInCommon) {
  const Lineage promoted = Promoted({.current = 1, .newest = 40}, 2);
  EXPECT_EQ(promoted.past, (std::vector<HistoryEnd>{{1, 40}}));
  const Lineage later{.past = promoted.past, .current = 2, .newest = 90};
  EXPECT_EQ(CommonVersion(later, {.current = 1, .newest = 40}), 40u);
  EXPECT_EQ(CommonVersion(later, {.current = 1, .newest = 30}), 30u);
  EXPECT_EQ(CommonVersion(later, {.current = 1, .newest = 60}), 40u) << "20 versions diverged";
  EXPECT_EQ(CommonVersion({.current = 1, .newest = 60}, later), 40u) << "in either order";
}

TEST(LineageTest, OneThatWasBehindWhenItsHistoryWasAdoptedForksWhereItIs) {
  // The history 1 ended at 100 and 2 went on; a follower of 2 that has come to 90 is promoted. What
  // the others have of 1 behind 90 is not what it has.
  const Lineage promoted = Promoted({.past = {{1, 100}}, .current = 2, .newest = 90}, 3);
  EXPECT_EQ(promoted.past, (std::vector<HistoryEnd>{{1, 90}, {2, 90}}));
  const Lineage later{.past = promoted.past, .current = 3, .newest = 95};
  EXPECT_EQ(CommonVersion(later, {.current = 1, .newest = 100}), 90u);
  EXPECT_EQ(CommonVersion(later, {.past = {{1, 100}}, .current = 2, .newest = 120}), 90u);
}

TEST(LineageTest, TwoThatWerePromotedFromTheSameForkThere) {
  const Lineage one{.past = {{1, 50}}, .current = 2, .newest = 70};
  const Lineage other{.past = {{1, 60}}, .current = 3, .newest = 65};
  EXPECT_EQ(CommonVersion(one, other), 50u);
}

}  // namespace
}  // namespace varve
