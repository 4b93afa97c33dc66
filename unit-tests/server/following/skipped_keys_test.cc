#include "server/following/skipped_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fmt/format.h"

namespace varve {
namespace {

TEST(SkippedKeysTest, CountsAllAndNamesTheFirstOfEachType) {
  SkippedKeys skipped;
  for (int i = 0; i < 1000; ++i) skipped.Add("hash", fmt::format("h:{}", i));
  for (int i = 0; i < 10; ++i) skipped.Add("list", fmt::format("l:{}", i));
  skipped.Add("script", "");
  skipped.Add("hash", "h:0");
  const std::map<std::string, uint64_t> counts = {{"hash", 1001}, {"list", 10}, {"script", 1}};
  EXPECT_EQ(skipped.counts(), counts);
  const std::vector<std::string> names = skipped.names();
  ASSERT_EQ(names.size(), SkippedKeys::kNames + SkippedKeys::kNamesPerType + 1);
  EXPECT_EQ(names[0], "hash h:0");
  EXPECT_EQ(names[SkippedKeys::kNames - 1], "hash h:99");
  EXPECT_EQ(names[SkippedKeys::kNames], "list l:0");
  EXPECT_EQ(names.back(), "script");
  skipped.Clear();
  EXPECT_TRUE(skipped.counts().empty());
  EXPECT_TRUE(skipped.names().empty());
}

TEST(SkippedKeysTest, NamesFitIntoALine) {
  SkippedKeys skipped;
  skipped.Add("hash", std::string("a\r\nb\0\x7F", 6) + "\xC3\xBC");
  EXPECT_EQ(skipped.names(), std::vector<std::string>{"hash a??b??\xC3\xBC"});
}

TEST(SkippedKeysTest, NamesAreBounded) {
  SkippedKeys skipped;
  for (int i = 0; i < 3000; ++i) skipped.Add(fmt::format("type {}", i), std::string(100'000, 'k'));
  const std::vector<std::string> names = skipped.names();
  EXPECT_EQ(names.size(), SkippedKeys::kMostNames);
  EXPECT_TRUE(std::all_of(names.begin(), names.end(), [](const std::string& name) {
    return name.size() <= SkippedKeys::kLongestShown + 10;
  }));
  EXPECT_EQ(skipped.counts().size(), 3000u);
}

}  // namespace
}  // namespace varve
