// The parts of eviction that need no store: the reads that are noted, and ranks.
#include "server/eviction/noted_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/eviction/key_rank.h"

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
  KeyAccess access = AfterReads(KeyAccess(), 1000, 1'000'000, &random);
  EXPECT_GT(access.uses, 10);
  const uint8_t before = access.uses;
  RankedKey key{.written_ms = 1, .access = access};
  EXPECT_EQ(UsesAt(key, 1'000'000), before);
  EXPECT_EQ(UsesAt(key, 1'000'000 + 3 * kMillisPerUse), before - 3);
  access = AfterReads(access, 0, 1'000'000 + 3 * kMillisPerUse, &random);
  EXPECT_EQ(access.uses, before - 3);
  key.access = access;
  EXPECT_EQ(RankOf(EvictionOrder::kLfu, key), 1'000'000 + before * kMillisPerUse);
}

}  // namespace
}  // namespace varve
