#include "structure/range_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>

namespace varve {
namespace {

std::string Text(const RangeSet& set) {
  std::string text;
  for (const auto& [begin, end] : set.ranges()) text += "[" + begin + "," + end + ")";
  return text;
}

TEST(RangeSetTest, JoinsWhatOverlapsOrTouches) {
  RangeSet set;
  set.Add("b", "c");
  set.Add("e", "f");
  EXPECT_EQ(Text(set), "[b,c)[e,f)");
  set.Add("c", "d");
  EXPECT_EQ(Text(set), "[b,d)[e,f)");
  set.Add("a", "e");
  EXPECT_EQ(Text(set), "[a,f)");
  set.Add("x", "");
  set.Add("w", "z");
  EXPECT_EQ(Text(set), "[a,f)[w,)");
  set.Add("z", "y");
  EXPECT_EQ(Text(set), "[a,f)[w,)");
  EXPECT_TRUE(set.Find("zz").has_value());
  EXPECT_FALSE(set.Find("f").has_value());
  set.JoinNeighbours();
  EXPECT_EQ(Text(set), "[a,)");
  EXPECT_EQ(set.bytes(), RangeSet::kBytesPerRange + 1);
}

TEST(RangeSetTest, HoldsWhatWasAdded) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    RangeSet set;
    std::set<char> held;
    for (int i = 0; i < 6; ++i) {
      const char begin = static_cast<char>('a' + random() % 26);
      const char end = static_cast<char>('a' + random() % 27);
      const bool open = random() % 12 == 0;
      set.Add(std::string(1, begin), open ? std::string() : std::string(1, end));
      for (char c = begin; c < (open ? '{' : end); ++c) held.insert(c);
    }
    size_t bytes = 0;
    for (const auto& [begin, end] : set.ranges())
      bytes += begin.size() + end.size() + RangeSet::kBytesPerRange;
    EXPECT_EQ(set.bytes(), bytes);
    for (char c = 'a'; c <= 'z'; ++c)
      EXPECT_EQ(set.Find(std::string(1, c)).has_value(), held.contains(c)) << Text(set);
  }
}

}  // namespace
}  // namespace varve
