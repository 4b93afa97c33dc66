#include "db/log/large_blocks.h"

#include <gtest/gtest.h>

#include "db/format/log_format.h"

namespace varve {
namespace {

std::vector<SequenceNumber> Firsts(const std::vector<LogBlockPlace>& places) {
  std::vector<SequenceNumber> firsts;
  for (const LogBlockPlace& place : places) firsts.push_back(place.first);
  return firsts;
}

using Sequences = std::vector<SequenceNumber>;

TEST(LargeBlocksTest, ABlockIsListedOnce) {
  LargeBlocks blocks;
  EXPECT_TRUE(blocks.Add(5));
  EXPECT_FALSE(blocks.Add(5));
  EXPECT_TRUE(blocks.Add(9));
  EXPECT_EQ(Firsts(blocks.Find(1, 100)), (Sequences{5, 9}));
  blocks.TakeBack();
  EXPECT_EQ(Firsts(blocks.Find(1, 100)), (Sequences{5}));
}

TEST(LargeBlocksTest, FindsTheBlocksThatHoldARange) {
  LargeBlocks blocks;
  for (const SequenceNumber first : {10, 20, 30}) blocks.Add(first);
  EXPECT_EQ(Firsts(blocks.Find(20, 29)), (Sequences{20}));
  EXPECT_EQ(Firsts(blocks.Find(15, 25)), (Sequences{10, 20})) << "the first may reach so far";
  EXPECT_EQ(Firsts(blocks.Find(1, 9)), Sequences());
  EXPECT_EQ(Firsts(blocks.Find(31, 40)), (Sequences{30}));
}

TEST(LargeBlocksTest, ListedBlocksGetTheirPlacesWhenTheyAreWritten) {
  LogBuffer buffer;
  buffer.Append("small", 1, 1, true);
  buffer.Append("large", 2, 3, true);
  buffer.Append("small", 4, 4, true);
  buffer.Append("large", 5, 5, true);
  LargeBlocks blocks;
  blocks.Add(2);
  blocks.Add(5);
  blocks.SetPlaces(buffer.blocks(), 0, 3, /*file_number=*/7, /*position=*/4096);
  const std::vector<LogBlockPlace> places = blocks.Find(1, 5);
  ASSERT_EQ(Firsts(places), (Sequences{2, 5}));
  EXPECT_EQ(places[0].file_number, 7u);
  EXPECT_EQ(places[0].payload_offset, 4096 + buffer.blocks()[1].begin + kLogBlockHeaderSize);
  EXPECT_EQ(places[1].file_number, 0u) << "not written yet";
  blocks.SetPlaces(buffer.blocks(), 3, 4, 8, 8192);
  EXPECT_EQ(blocks.Find(5, 5).back().file_number, 8u);
  EXPECT_EQ(blocks.Find(5, 5).back().payload_offset, 8192 + kLogBlockHeaderSize);
}

TEST(LargeBlocksTest, ForgetsWhatWasFlushed) {
  LargeBlocks blocks;
  for (const SequenceNumber first : {10, 20, 30}) blocks.Add(first);
  blocks.Forget(18);
  EXPECT_EQ(Firsts(blocks.Find(1, 100)), (Sequences{10, 20, 30})) << "10 may hold 19";
  blocks.Forget(19);
  EXPECT_EQ(Firsts(blocks.Find(1, 100)), (Sequences{20, 30}));
  blocks.Forget(100);
  EXPECT_EQ(Firsts(blocks.Find(1, 200)), (Sequences{30}));
}

}  // namespace
}  // namespace varve
