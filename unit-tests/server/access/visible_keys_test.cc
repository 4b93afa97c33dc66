#include "server/access/visible_keys.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "util/base/glob.h"

namespace varve {
namespace {

bool Holds(const KeyRange& range, const std::string& key) {
  return !range.empty && range.lower <= key && (range.upper.empty() || key < range.upper);
}

bool AnyHolds(const std::vector<KeyRange>& ranges, const std::string& key) {
  for (const KeyRange& range : ranges) {
    if (Holds(range, key)) return true;
  }
  return false;
}

std::string RandomText(std::mt19937& random, std::string_view letters) {
  std::string text;
  for (size_t i = random() % 5; i > 0; --i) text.push_back(letters[random() % letters.size()]);
  return text;
}

TEST(VisibleKeysTest, APatternIsARangeIfItsStarsAreAtItsEnd) {
  for (const char* pattern : {"app:*", "app:**", "*", "app", "", "a\\*", "a\\?b*", "a\\[*"})
    EXPECT_TRUE(RangeOfPattern(pattern).has_value()) << pattern;
  for (const char* pattern : {"*:app", "a*b", "a?", "a?*", "[a-c]*", "a[b]"})
    EXPECT_FALSE(RangeOfPattern(pattern).has_value()) << pattern;
  EXPECT_EQ(RangeOfPattern("app:*")->lower, "app:");
  EXPECT_EQ(RangeOfPattern("app:*")->upper, "app;");
  EXPECT_EQ(RangeOfPattern("\xff*")->upper, "");
  EXPECT_EQ(RangeOfPattern("k")->upper, std::string("k\0", 2));
}

TEST(VisibleKeysTest, TheRangeHoldsWhatThePatternMatches) {
  std::mt19937 random(3);
  for (int run = 0; run < 20000; ++run) {
    const std::string pattern = RandomText(random, "ab*\\?\xff");
    const std::optional<KeyRange> range = RangeOfPattern(pattern);
    if (!range) continue;
    const std::string key = RandomText(random, "ab*\\?\xff");
    EXPECT_EQ(Holds(*range, key), GlobMatches(pattern, key)) << pattern << " and " << key;
  }
}

TEST(VisibleKeysTest, JoinedAndCutRangesHoldTheSameKeys) {
  std::mt19937 random(5);
  for (int run = 0; run < 3000; ++run) {
    std::vector<KeyRange> ranges;
    for (size_t i = random() % 5; i > 0; --i)
      ranges.push_back(PrefixRange(RandomText(random, "abc")));
    const std::vector<KeyRange> joined = JoinRanges(ranges);
    for (size_t i = 0; i + 1 < joined.size(); ++i) {
      ASSERT_FALSE(joined[i].upper.empty());
      ASSERT_LT(joined[i].upper, joined[i + 1].lower);
    }
    KeyRange whole;
    whole.lower = RandomText(random, "abc");
    whole.upper = RandomText(random, "abc");
    whole.empty = !whole.upper.empty() && whole.lower >= whole.upper;
    const std::vector<KeyRange> cut = CutRanges(whole, joined);
    for (int i = 0; i < 50; ++i) {
      const std::string key = RandomText(random, "abcd");
      EXPECT_EQ(AnyHolds(joined, key), AnyHolds(ranges, key)) << key;
      EXPECT_EQ(AnyHolds(cut, key), AnyHolds(ranges, key) && Holds(whole, key)) << key;
    }
  }
}

TEST(VisibleKeysTest, ARangeMayBeWrittenIfOneStretchOfKeysHoldsIt) {
  Selector selector;
  selector.keys = {{"a*", kMayBoth}, {"b*", kMayWrite}, {"d*", kMayRead}, {"x*y", kMayBoth}};
  const auto writes = [&](std::string_view min, std::string_view max) {
    return AllowsRange(selector, *ParseKeyRange(min, max), kMayWrite);
  };
  EXPECT_TRUE(writes("[a", "(b"));
  EXPECT_TRUE(writes("[a1", "[a2"));
  EXPECT_TRUE(writes("[a", "(c"));  // both stretches touch
  EXPECT_FALSE(writes("[a", "[c"));
  EXPECT_FALSE(writes("-", "(b"));
  EXPECT_FALSE(writes("[b", "+"));
  EXPECT_FALSE(writes("[d1", "[d2"));
  EXPECT_FALSE(writes("[x1", "[x1y"));
  EXPECT_TRUE(writes("[z", "[y"));  // no key at all
  selector.all_keys = true;
  EXPECT_TRUE(writes("-", "+"));
}

}  // namespace
}  // namespace varve
