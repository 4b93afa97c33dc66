#include "db/segment/block_guide.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "db/format/key_base.h"
#include "db/format/record_format.h"
#include "gtest/gtest.h"

namespace varve {
namespace {

constexpr uint64_t kSeed = 7;

struct Block {
  std::string base;
  std::string bytes;
  std::vector<std::string> keys;
  std::vector<size_t> offsets;
  std::string guide;
};

// Returns a block of records with these keys and values of up to `most` bytes, in a segment with
// this key base. Where a base is, one record of four holds its whole key all the same.
Block MakeBlock(std::vector<std::string> keys, size_t most, std::mt19937* random,
                std::string_view base = "") {
  Block block;
  block.base = base;
  block.keys = std::move(keys);
  SequenceNumber sequence = 1000;
  std::vector<uint32_t> shared;
  for (const std::string& key : block.keys) {
    shared.push_back(base.empty() || (*random)() % 4 == 0 ? 0 : SharedBytes(base, key));
    const std::string value((*random)() % (most + 1), 'v');
    block.offsets.push_back(block.bytes.size());
    RecordView record;
    record.key = key;
    record.value = value;
    record.sequence = sequence--;
    record.kind = RecordKind::kValue;
    AppendRecord(record, kSeed, &block.bytes, shared.back());
  }
  BlockGuideBuilder builder(block.base);
  for (size_t i = 0; i < block.keys.size(); ++i) {
    const std::string_view key = block.keys[i];
    builder.Add(shared[i], key.substr(shared[i]), block.offsets[i]);
  }
  block.guide.resize(BlockGuideSize(block.bytes.size()));
  builder.Write(block.guide.size(), block.guide.data());
  return block;
}

// Returns how many records lie between where the search begins and where it ends, once it is clear
// that it may begin there.
size_t StepsOf(const Block& block, const std::string& key) {
  const size_t start = StartByGuide(block.guide, block.bytes, block.base, key);
  const auto at = std::find(block.offsets.begin(), block.offsets.end(), start);
  EXPECT_NE(at, block.offsets.end()) << "no record begins at " << start;
  const auto index = static_cast<size_t>(at - block.offsets.begin());
  const auto first = static_cast<size_t>(
      std::lower_bound(block.keys.begin(), block.keys.end(), key) - block.keys.begin());
  if (index != 0) EXPECT_LT(index, first);
  EXPECT_LE(index, first);
  return first - index;
}

TEST(BlockGuide, ASearchBeginsAtOrBeforeEachKey) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> keys(2 + random() % 60);
    const std::string prefix(random() % 12, 'p');
    const int letters = round % 3 == 0 ? 2 : 256;  // many equal words, and bytes of every value
    for (std::string& key : keys) {
      key = prefix;
      for (size_t left = random() % 9; left > 0; --left)
        key.push_back(static_cast<char>(random() % static_cast<unsigned>(letters)));
    }
    std::sort(keys.begin(), keys.end());
    const Block block = MakeBlock(keys, random() % 400, &random);
    for (const std::string& key : block.keys) {
      StepsOf(block, key);
      StepsOf(block, key + '\0');
      StepsOf(block, key.substr(0, key.size() / 2));
    }
    StepsOf(block, "");
    StepsOf(block, "\xff");
    StepsOf(block, prefix + "\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  }
}

TEST(BlockGuide, RecordsShareMoreOrLessOfTheirKeys) {
  std::mt19937 random(5);
  for (int round = 0; round < 400; ++round) {
    // The first key of the segment may stand in the block or lie before it.
    const std::string base(1 + random() % 12, 'p');
    std::vector<std::string> keys;
    if (round % 2 == 0) keys.push_back(base);
    for (size_t left = 2 + random() % 60; left > 0; --left) {
      // All of the base and more, or a part of it and a higher byte.
      std::string key = base.substr(0, random() % (base.size() + 1));
      key.push_back(static_cast<char>('q' + random() % (round % 3 == 0 ? 2 : 100)));
      for (size_t more = random() % 7; more > 0; --more) key.push_back(static_cast<char>(random()));
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());
    const Block block = MakeBlock(keys, random() % 400, &random, base);
    std::vector<std::string> places = {"", "o", "\xff", base, base.substr(0, base.size() / 2)};
    for (const std::string& key : block.keys) {
      places.push_back(key);
      places.push_back(key + '\0');
      places.push_back(key + '\xff');
      places.push_back(key.substr(0, random() % (key.size() + 1)));
    }
    for (const std::string& place : places) StepsOf(block, place);
  }
}

TEST(BlockGuide, WhatRecordsShareChangesNothing) {
  std::mt19937 random(6);
  std::vector<std::string> keys;
  for (int i = 1000; i < 1060; ++i) keys.push_back("benchmark00000" + std::to_string(2 * i));
  for (const std::string& base : {keys[0], std::string("benchmark00000"), std::string("be")}) {
    const Block block = MakeBlock(keys, 100, &random, base);
    ASSERT_FALSE(block.guide.empty());
    for (const std::string& key : keys) {
      EXPECT_LE(StepsOf(block, key), kGuideDistance / 12);
      EXPECT_LE(StepsOf(block, key + "1"), kGuideDistance / 12 + 1);
    }
    EXPECT_EQ(StepsOf(block, "a"), 0u);
    EXPECT_LE(StepsOf(block, "z"), kGuideDistance / 12);
  }
}

TEST(BlockGuide, ASearchTakesFewSteps) {
  std::mt19937 random(2);
  std::vector<std::string> keys;
  for (int i = 1000; i < 1030; ++i) keys.push_back("benchmark00000" + std::to_string(2 * i));
  const Block block = MakeBlock(keys, 0, &random);
  ASSERT_GT(block.bytes.size(), 600u);
  Block large = MakeBlock(keys, 200, &random);
  for (const std::string& key : keys) {
    EXPECT_LE(StepsOf(large, key), kGuideDistance / 25);
    EXPECT_LE(StepsOf(large, key + "1"), kGuideDistance / 25 + 1);
  }
  EXPECT_EQ(StepsOf(large, "a"), 0u);
  EXPECT_LE(StepsOf(large, "z"), kGuideDistance / 25);
}

TEST(BlockGuide, VersionsOfOneKeyAreFoundFromTheirNewest) {
  std::mt19937 random(3);
  std::vector<std::string> keys(40, "same key");
  keys.insert(keys.begin(), "earlier");
  keys.push_back("the last");
  const Block block = MakeBlock(keys, 100, &random);
  EXPECT_EQ(StartByGuide(block.guide, block.bytes, block.base, "same key"), 0u);
  EXPECT_GT(StartByGuide(block.guide, block.bytes, block.base, "the last"), block.offsets[20]);
}

TEST(BlockGuide, ABlockWithoutAGuideIsSearchedFromItsBeginning) {
  EXPECT_EQ(BlockGuideSize(kGuideDistance), 0);
  EXPECT_EQ(BlockGuideSize(size_t{1} << 20), 0);
  std::mt19937 random(4);
  const Block block = MakeBlock({"a", "b", "c"}, 10, &random);
  EXPECT_TRUE(block.guide.empty());
  EXPECT_EQ(StartByGuide(block.guide, block.bytes, block.base, "c"), 0u);
}

}  // namespace
}  // namespace varve
