// Cursors of SCAN are kept within bounds, and those in use longest; patterns match as Redis', in bounded time.
#include "server/scan_cursors.h"

#include <gtest/gtest.h>

#include <string>

#include "server/glob.h"

namespace varve {
namespace {

TEST(ScanCursorsTest, ACursorGoesWhenTheOneBehindItIsUsed) {
  ScanCursors cursors;
  const uint64_t first = cursors.Add(1, "a", 0);
  const uint64_t second = cursors.Add(1, "b", first);
  EXPECT_NE(first, 0u);
  EXPECT_EQ(cursors.Find(first), "a");
  EXPECT_EQ(cursors.Find(second), "b");
  EXPECT_EQ(cursors.Find(first), std::nullopt);
  EXPECT_EQ(cursors.Find(second), "b");
  EXPECT_EQ(cursors.Find(second + 1), std::nullopt);
  EXPECT_EQ(cursors.bytes(), 1 + ScanCursors::kOverhead);
}

TEST(ScanCursorsTest, AClientTakesItsOwnCursorsAway) {
  ScanCursors cursors({.all_bytes = 1u << 20, .client_bytes = 10 * (ScanCursors::kOverhead + 1)});
  const uint64_t other = cursors.Add(1, "o", 0);
  const uint64_t oldest = cursors.Add(2, "x", 0);
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    last = cursors.Add(2, "x", 0);
    ASSERT_TRUE(i >= 9 || cursors.Find(oldest).has_value());
  }
  EXPECT_EQ(cursors.Find(other), "o");
  EXPECT_EQ(cursors.Find(last), "x");
  EXPECT_EQ(cursors.bytes(), 11 * (ScanCursors::kOverhead + 1));
  const uint64_t large = cursors.Add(2, std::string(1u << 16, 'k'), 0);  // larger than all it may have: kept alone
  EXPECT_TRUE(cursors.Find(large).has_value());
  EXPECT_EQ(cursors.Find(last), std::nullopt);
}

TEST(ScanCursorsTest, AllClientsTogetherAreBounded) {
  const size_t bytes = ScanCursors::kOverhead + 1;
  ScanCursors cursors({.all_bytes = 100 * bytes, .client_bytes = 10 * bytes});
  const uint64_t used = cursors.Add(0, "u", 0);
  const uint64_t unused = cursors.Add(0, "v", 0);
  for (uint64_t client = 1; client < 1000; ++client) {
    cursors.Add(client, "x", 0);
    EXPECT_EQ(cursors.Find(used), "u");
  }
  EXPECT_EQ(cursors.Find(unused), std::nullopt);
  EXPECT_EQ(cursors.bytes(), 100 * bytes);
}

TEST(GlobTest, SetsAndEscapesAreRedisOwn) {
  EXPECT_TRUE(GlobMatches("[z-a]", "m"));  // turned around
  EXPECT_TRUE(GlobMatches("[a", "a"));     // without an end
  EXPECT_TRUE(GlobMatches("[^", "a"));
  EXPECT_FALSE(GlobMatches("[", "["));
  EXPECT_TRUE(GlobMatches("[\\]]", "]"));
  EXPECT_TRUE(GlobMatches("\\", "\\"));
  EXPECT_FALSE(GlobMatches("a", "A"));
  EXPECT_TRUE(GlobMatches("[A-C]x", "bX", GlobCase::kInsensitive));
  EXPECT_TRUE(GlobMatches("a**b", "ab"));
  EXPECT_TRUE(GlobMatches("", ""));
}

TEST(GlobTest, TheLiteralBeginningIsWhatMatchesShare) {
  EXPECT_EQ(GlobPrefix("user:*"), "user:");
  EXPECT_EQ(GlobPrefix("us?r"), "us");
  EXPECT_EQ(GlobPrefix("[u]ser"), "");
  EXPECT_EQ(GlobPrefix("a\\*b*"), "a*b");
  EXPECT_EQ(GlobPrefix("plain\\"), "plain\\");
}

TEST(GlobTest, AHostilePatternEnds) {
  const std::string text(1u << 20, 'a');
  const std::string half(1u << 19, 'a');
  std::string sets = "*";
  for (int i = 0; i < 10'000; ++i) sets += "[a-z0123456789]";
  EXPECT_FALSE(GlobMatches("*" + half + "b", text));
  EXPECT_FALSE(GlobMatches(sets + "b", text));
  EXPECT_FALSE(GlobMatches("*" + half, text)) << "it would match, for who has the time";
  EXPECT_TRUE(GlobMatches("*" + half, text.substr(0, half.size() + 1)));
  std::string stars;
  for (int i = 0; i < 50'000; ++i) stars += "*?";
  EXPECT_TRUE(GlobMatches(stars, text.substr(0, 50'000)));
}

}  // namespace
}  // namespace varve
