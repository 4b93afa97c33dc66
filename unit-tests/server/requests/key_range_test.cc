#include "server/requests/key_range.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

using namespace std::string_literals;

void ExpectRange(std::string_view min, std::string_view max, const std::string& lower,
                 const std::string& upper) {
  const std::optional<KeyRange> range = ParseKeyRange(min, max);
  ASSERT_TRUE(range.has_value()) << min << " " << max;
  EXPECT_FALSE(range->empty) << min << " " << max;
  EXPECT_EQ(range->lower, lower);
  EXPECT_EQ(range->upper, upper);
}

void ExpectNothing(std::string_view min, std::string_view max) {
  const std::optional<KeyRange> range = ParseKeyRange(min, max);
  ASSERT_TRUE(range.has_value()) << min << " " << max;
  EXPECT_TRUE(range->empty) << min << " " << max;
}

TEST(KeyRangeTest, BoundsAreInclusiveExclusiveOrTheEnds) {
  ExpectRange("-", "+", "", "");
  ExpectRange("[a", "[b", "a", "b\0"s);
  ExpectRange("(a", "(b", "a\0"s, "b");
  ExpectRange("[", "[", "", "\0"s);  // the empty key alone
  ExpectRange("(", "+", "\0"s, "");
  ExpectRange("[a", "[a", "a", "a\0"s);
}

TEST(KeyRangeTest, SomeRangesHoldNothing) {
  ExpectNothing("+", "+");
  ExpectNothing("-", "-");
  ExpectNothing("-", "(");
  ExpectNothing("(a", "[a");
  ExpectNothing("[b", "[a");
  ExpectNothing("[\xff", "[a");  // bytes are unsigned
}

TEST(KeyRangeTest, ABoundNeedsItsMark) {
  EXPECT_FALSE(ParseKeyRange("a", "+").has_value());
  EXPECT_FALSE(ParseKeyRange("-", "b").has_value());
  EXPECT_FALSE(ParseKeyRange("", "+").has_value());
  EXPECT_FALSE(ParseKeyRange("-", "").has_value());
}

TEST(KeyRangeTest, APrefixEndsBeforeItsSuccessor) {
  EXPECT_EQ(PrefixRange("ab").upper, "ac");
  EXPECT_EQ(PrefixRange("a\xff\xff").upper, "b");
  EXPECT_EQ(PrefixRange("\xff").upper, "");
  EXPECT_EQ(PrefixRange("").upper, "");
  EXPECT_EQ(PrefixRange("a\x7f").upper, "a\x80");
}

}  // namespace
}  // namespace varve
