// The tables behind CLIENT TRACKING: keys, prefixes, and what a write changes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/tracking/tracked_keys.h"
#include "server/tracking/tracked_prefixes.h"
#include "server/tracking/written_keys.h"

namespace varve {
namespace {

using Ids = std::vector<uint64_t>;
using Words = std::vector<std::string>;

Ids Listed(const TrackedKeys::ClientIds& clients) { return {clients.begin(), clients.end()}; }

TEST(TrackedKeysTest, AKeyLeavesWithItsClients) {
  TrackedKeys keys;
  keys.Add(0, "a", 9);
  keys.Add(0, "a", 3);
  keys.Add(0, "a", 9);
  keys.Add(1, "a", 5);
  EXPECT_EQ(keys.keys(), 2u);
  EXPECT_EQ(keys.items(), 3u);
  EXPECT_EQ(Listed(keys.Take(0, "a")), (Ids{3, 9}));
  EXPECT_EQ(Listed(keys.Take(0, "a")), Ids{});
  EXPECT_EQ(Listed(keys.Take(2, "a")), Ids{});
  EXPECT_EQ(Listed(keys.Take(1, "a")), Ids{5});
  EXPECT_EQ(keys.bytes(), 0u);
  EXPECT_EQ(keys.items(), 0u);
}

TEST(TrackedKeysTest, ARangeLeavesUnlessItHasTooMany) {
  TrackedKeys keys;
  for (const char* key : {"a", "b", "c", "d"}) keys.Add(7, key, 1);
  keys.Add(6, "b", 1);
  std::vector<TrackedKeys::Entry> taken;
  EXPECT_FALSE(keys.TakeRange(7, "b", "", 2, &taken));
  EXPECT_TRUE(taken.empty());
  EXPECT_TRUE(keys.TakeRange(7, "b", "d", 2, &taken));
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].key + taken[1].key, "bc");
  EXPECT_TRUE(keys.TakeRange(8, "", "", 0, &taken));
  EXPECT_EQ(keys.keys(), 3u);
  EXPECT_EQ(keys.TakeSpace(7).keys.size(), 2u);
  EXPECT_EQ(keys.TakeSpace(7).keys.size(), 0u);
  EXPECT_EQ(keys.keys(), 1u);
}

TEST(TrackedKeysTest, KeysLeaveInACircle) {
  TrackedKeys keys;
  EXPECT_FALSE(keys.TakeNext().has_value());
  for (const char* key : {"a", "c", "e"}) keys.Add(1, key, 1);
  keys.Add(2, "b", 1);
  EXPECT_EQ(keys.TakeNext()->key, "a");
  keys.Add(1, "a", 1);
  Words taken;
  while (const auto entry = keys.TakeNext()) taken.push_back(entry->key);
  EXPECT_EQ(taken, (Words{"c", "e", "b", "a"}));
  EXPECT_EQ(keys.bytes(), 0u);
}

Words PrefixesOf(const TrackedPrefixes& prefixes, std::string_view key) {
  Words found;
  prefixes.ForEachOfKey(key, [&](const std::string& prefix, const TrackedPrefixes::ClientIds&) {
    found.push_back(prefix);
  });
  return found;
}

TEST(TrackedPrefixesTest, AllPrefixesOfAKeyAreFound) {
  TrackedPrefixes prefixes;
  EXPECT_EQ(PrefixesOf(prefixes, "key"), Words{});
  for (const char* prefix : {"", "a", "ab", "abd", "abcde", "ac", "b"}) prefixes.Add(prefix, 1);
  EXPECT_EQ(PrefixesOf(prefixes, "abc"), (Words{"ab", "a", ""}));
  EXPECT_EQ(PrefixesOf(prefixes, "abcdef"), (Words{"abcde", "ab", "a", ""}));
  EXPECT_EQ(PrefixesOf(prefixes, "zebra"), Words{""});
  EXPECT_EQ(PrefixesOf(prefixes, ""), Words{""});
  prefixes.Add("", 2);
  prefixes.Remove("", 1);
  EXPECT_EQ(PrefixesOf(prefixes, "x"), Words{""});
  prefixes.Remove("", 2);
  EXPECT_EQ(PrefixesOf(prefixes, "x"), Words{});
}

TEST(TrackedPrefixesTest, PrefixesThatARangeMeetsAreFound) {
  TrackedPrefixes prefixes;
  for (const char* prefix : {"a", "b", "bx", "c", "d"}) prefixes.Add(prefix, 1);
  const auto met = [&](std::string_view begin, std::string_view end) {
    std::string found;
    prefixes.ForEachOfRange(begin, end,
                            [&](const std::string& prefix, const TrackedPrefixes::ClientIds&) {
                              found += prefix + " ";
                            });
    return found;
  };
  EXPECT_EQ(met("", ""), "a b bx c d ");
  EXPECT_EQ(met("bm", "d"), "b bx c ");
  EXPECT_EQ(met("d2", ""), "d ");
  EXPECT_EQ(met("e", ""), "");
}

TEST(WrittenKeysTest, ABatchSaysWhatItChanges) {
  WriteBatch batch;
  batch.UseNamespace(4);
  batch.Put("b", "1");
  batch.Put("a", "1");
  batch.Delete("b");
  batch.Delete("c", 2);
  batch.DeleteRange("x", "");
  batch.SwapNamespaces(0, 1);
  WrittenKeys written;
  written.AddBatch(batch);
  written.Sort();
  EXPECT_EQ(written.keys(), (std::vector<WrittenKeys::Key>{{2, "c"}, {4, "a"}, {4, "b"}}));
  ASSERT_EQ(written.ranges().size(), 1u);
  EXPECT_EQ(written.ranges()[0].begin, "x");
  EXPECT_EQ(written.spaces().size(), 2u);
}

TEST(WrittenKeysTest, TooManyKeysAreAllOfTheirNamespaces) {
  WrittenKeys written;
  for (size_t i = 0; i <= WrittenKeys::kMostKeys; ++i) written.AddKey(3, std::to_string(i));
  written.AddKey(5, "a");
  EXPECT_TRUE(written.spaces().contains(3));
  EXPECT_EQ(written.keys().size(), 1u);
}

}  // namespace
}  // namespace varve
