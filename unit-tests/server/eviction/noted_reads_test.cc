// The parts of eviction that need no store: the reads that are noted, and ranks.
#include "server/eviction/noted_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/eviction/key_rank.h"
#include "util/base/hash.h"

namespace varve {
namespace {

TEST(NotedReadsTest, AKeyIsNotedOnceAndWhatFindsNoRoomIsCounted) {
  NotedReads touched;
  touched.Start();
  for (int read = 0; read < 1000; ++read) touched.Add(7, "hot");
  std::vector<Touch> taken = touched.Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].space, 7u);
  EXPECT_EQ(taken[0].count, 1000u);
  EXPECT_TRUE(touched.Take().empty());
  constexpr size_t kReads = 2 * NotedReads::kShards * NotedReads::kSlots;
  for (size_t key = 0; key < kReads; ++key) touched.Add(0, std::to_string(key));
  taken = touched.Take();
  EXPECT_EQ(taken.size() + touched.dropped(), kReads);
  EXPECT_GT(taken.size(), kReads / 3);
}

TEST(KeyRankTest, CountsOfUsesDecayByOneAMinute) {
  uint64_t random = 1;
  KeyAccess access = AfterReads(KeyAccess(), {1000, kUsesOfNewKey}, 1'000'000, &random);
  EXPECT_GT(access.uses, 10);
  const uint8_t before = access.uses;
  RankedKey key{.written_ms = 1, .access = access};
  EXPECT_EQ(UsesAt(key, 1'000'000), before);
  EXPECT_EQ(UsesAt(key, 1'000'000 + 3 * kMillisPerUse), before - 3);
  access = AfterReads(access, {0, 0}, 1'000'000 + 3 * kMillisPerUse, &random);
  EXPECT_EQ(access.uses, before - 3);
  key.access = access;
  EXPECT_EQ(RankOf(EvictionOrder::kLfu, key), 1'000'000 + before * kMillisPerUse);
}

TEST(KeyRankTest, AKeyHasAtLeastTheUsesThatItWasWrittenWith) {
  uint64_t random = 1;
  constexpr uint64_t kNow = 10'000'000;
  const KeyAccess old{.at_ms = kNow - 10 * kMillisPerUse, .uses = 6};
  EXPECT_EQ(AfterReads(old, {1, 0}, kNow, &random).uses, 1);
  EXPECT_EQ(AfterReads(old, {1, kUsesOfNewKey}, kNow, &random).uses, 6);
  EXPECT_EQ(AfterReads(KeyAccess(), {1, 0}, kNow, &random).uses, 1) << "it is old";
  const RankedKey again{.written_ms = kNow, .access = old};
  EXPECT_EQ(UsesAt(again, kNow), kUsesOfNewKey);
  EXPECT_EQ(UsesAt(again, kNow + 2 * kMillisPerUse), kUsesOfNewKey - 2);
}

TEST(NotedReadsTest, AnEntryTellsHowManyUsesItsKeyHasAtLeast) {
  NotedReads touched;
  touched.Start();
  const auto uses_of = [&](const std::string& key, SequenceNumber version) -> int {
    touched.Add(0, key, version);
    return touched.Find(0, HashKey(key)).least_uses;
  };
  EXPECT_EQ(uses_of("a", 1), 5) << "nothing is known";
  touched.SetAges({100, 90, 80, 70, 60});
  EXPECT_EQ(uses_of("b", 101), 5);
  EXPECT_EQ(uses_of("c", 100), 4);
  EXPECT_EQ(uses_of("d", 61), 1);
  EXPECT_EQ(uses_of("e", 60), 0);
  EXPECT_EQ(uses_of("e", 95), 4) << "it was written again";
  EXPECT_EQ(uses_of("f", kNoSequence), 5) << "within a transaction";
  EXPECT_EQ(touched.Find(0, HashKey("g")).count, 0);
  EXPECT_EQ(touched.Find(1, HashKey("f")).count, 0);
}

}  // namespace
}  // namespace varve
