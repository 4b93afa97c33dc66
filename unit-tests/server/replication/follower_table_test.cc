// What a primary knows of its followers.
#include "server/replication/follower_table.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

using Time = FollowerTable::Time;

constexpr Time kNow = Time(std::chrono::hours(1));

// A follower whose link was cut before it released its copy kept all others from taking one for as
// long as it followed.
TEST(FollowerTableTest, AFollowerThatJoinsAnewTakesNoCopyAnyMore) {
  FollowerTable followers;
  followers.Join({.id = "a", .told = kNow});
  followers.Join({.id = "b", .told = kNow});
  EXPECT_TRUE(followers.BeginCopy("a", kNow));
  EXPECT_FALSE(followers.BeginCopy("b", kNow));
  followers.Join({.id = "b", .told = kNow});
  EXPECT_FALSE(followers.BeginCopy("b", kNow)) << "the other one takes it still";
  EXPECT_TRUE(followers.Copies("a", kNow));
  followers.Join({.id = "a", .told = kNow});
  EXPECT_FALSE(followers.Copies("a", kNow));
  EXPECT_TRUE(followers.BeginCopy("b", kNow));
}

TEST(FollowerTableTest, ASilentFollowerKeepsNobodyFromTakingACopy) {
  FollowerTable followers;
  followers.Join({.id = "a", .told = kNow});
  followers.Join({.id = "b", .told = kNow});
  EXPECT_TRUE(followers.BeginCopy("a", kNow));
  EXPECT_FALSE(followers.BeginCopy("b", kNow));
  EXPECT_TRUE(followers.BeginCopy("b", kNow + std::chrono::seconds(1)));
  EXPECT_FALSE(followers.Copies("a", kNow));
}

}  // namespace
}  // namespace varve
