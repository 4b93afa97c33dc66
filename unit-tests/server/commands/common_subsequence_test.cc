// The longest common subsequence, beside the classic table of lengths and the way back through it.
#include "server/commands/common_subsequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace varve {
namespace {

struct Classic {
  Classic(std::string_view a, std::string_view b)
      : lengths(a.size() + 1, std::vector<int>(b.size() + 1, 0)) {
    for (size_t i = 1; i <= a.size(); ++i) {
      for (size_t j = 1; j <= b.size(); ++j) {
        lengths[i][j] = a[i - 1] == b[j - 1] ? lengths[i - 1][j - 1] + 1
                                             : std::max(lengths[i - 1][j], lengths[i][j - 1]);
      }
    }
    for (size_t i = a.size(), j = b.size(); i > 0 && j > 0;) {
      if (a[i - 1] == b[j - 1]) {
        bytes.insert(bytes.begin(), a[i - 1]);
        --i;
        --j;
        places.emplace_back(i, j);
      } else if (lengths[i - 1][j] > lengths[i][j - 1]) {
        --i;
      } else {
        --j;
      }
    }
  }
  std::vector<std::vector<int>> lengths;
  std::string bytes;
  std::vector<std::pair<size_t, size_t>> places;  // from the last to the first
};

void ExpectAsClassic(std::string_view a, std::string_view b) {
  const Classic classic(a, b);
  const CommonSubsequence found = FindCommonSubsequence(a, b);
  EXPECT_EQ(CommonSubsequenceLength(a, b), classic.bytes.size());
  EXPECT_EQ(found.bytes, classic.bytes);
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t r = 0; r < found.runs.size(); ++r) {
    const CommonRun& run = found.runs[r];
    ASSERT_EQ(run.a_last - run.a_first, run.b_last - run.b_first);
    for (size_t k = 0; k < run.size(); ++k) places.emplace_back(run.a_last - k, run.b_last - k);
    if (r > 0) {
      // Runs that touch would be one.
      const CommonRun& later = found.runs[r - 1];
      EXPECT_FALSE(run.a_last + 1 == later.a_first && run.b_last + 1 == later.b_first);
    }
  }
  EXPECT_EQ(places, classic.places);
}

TEST(CommonSubsequenceTest, ExampleWithItsRuns) {
  const CommonSubsequence found = FindCommonSubsequence("ohmytext", "mynewtext");
  EXPECT_EQ(found.bytes, "mytext");
  ASSERT_EQ(found.runs.size(), 2u);
  EXPECT_EQ(found.runs[0].a_first, 4u);
  EXPECT_EQ(found.runs[0].a_last, 7u);
  EXPECT_EQ(found.runs[0].b_first, 5u);
  EXPECT_EQ(found.runs[1].b_last, 1u);
}

TEST(CommonSubsequenceTest, RandomStringsOfAllShapes) {
  std::mt19937 random(1);
  for (int round = 0; round < 1500; ++round) {
    std::string a(random() % (round % 10 == 0 ? 300 : 20), '\0');
    std::string b(random() % (round % 7 == 0 ? 300 : 20), '\0');
    const unsigned letters = 1 + random() % 4;
    for (char& c : a) c = static_cast<char>(0xFE + random() % letters);
    for (char& c : b) c = static_cast<char>(0xFE + random() % letters);
    ExpectAsClassic(a, b);
  }
}

TEST(CommonSubsequenceTest, EmptyAndLongStrings) {
  ExpectAsClassic("", "");
  ExpectAsClassic("", "abc");
  ExpectAsClassic("abc", "");
  ExpectAsClassic(std::string(64, 'a'), std::string(128, 'a'));
  const std::string longest(10'000, 'a');
  EXPECT_EQ(FindCommonSubsequence(longest, longest).bytes, longest);
  EXPECT_EQ(FindCommonSubsequence(longest, longest).runs.size(), 1u);
  EXPECT_EQ(CommonSubsequenceLength(longest + "b", "b" + longest), 10'000u);
}

}  // namespace
}  // namespace varve
