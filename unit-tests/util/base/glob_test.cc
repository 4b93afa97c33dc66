// Patterns match as Redis' do, in bounded time.
#include "util/base/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

TEST(GlobTest, MatchesPatternsOfConfigGet) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("save", "SAVE", GlobCase::kInsensitive));
  EXPECT_TRUE(GlobMatches("max*", "maxclients"));
  EXPECT_TRUE(GlobMatches("*e*e", "where"));
  EXPECT_TRUE(GlobMatches("s?n[a-c]", "sync"));
  EXPECT_TRUE(GlobMatches("[^b]ync", "sync"));
  EXPECT_TRUE(GlobMatches("a\\*", "a*"));
  EXPECT_FALSE(GlobMatches("a\\*", "ab"));
  EXPECT_FALSE(GlobMatches("max", "maxclients"));
  EXPECT_FALSE(GlobMatches("", "a"));
  EXPECT_FALSE(GlobMatches("s?", "s"));
  EXPECT_FALSE(GlobMatches("*a*a*a*a*a*a*a*a*b", std::string(200, 'a')));
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

// In `[a\]*` the escape was stepped over only while no item had matched yet, so for an `a` the
// escaped bracket closed the set.
TEST(GlobTest, WhatAnItemOfASetMatchesDoesNotMoveItsEnd) {
  EXPECT_FALSE(GlobMatches("[ab\\]c]", "ac]"))
      << "the escaped bracket is no end, whether the byte was found before it or not";
  EXPECT_TRUE(GlobMatches("[ab\\]c]", "a"));
  EXPECT_TRUE(GlobMatches("[^ab\\]c]x", "dx"));
  EXPECT_FALSE(GlobMatches("[a\\]*", "abc"));
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
