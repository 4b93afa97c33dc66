#include "db/segment/segment_fences.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace varve {
namespace {

constexpr uint32_t kBlockSize = 4096;
constexpr uint64_t kNumber = 3;

struct Built {
  std::string bytes;
  std::vector<std::string> keys;  // one a block
  SegmentFences fences;
};

// Returns fences of as many blocks as there are keys, with one record each. The buffer ends where
// the fences end, so that a sanitizer sees a read behind them.
Built BuildFences(std::vector<std::string> keys) {
  Built built;
  built.keys = std::move(keys);
  SegmentFencesBuilder builder(kBlockSize);
  std::string previous;
  for (size_t i = 0; i < built.keys.size(); ++i) {
    builder.Add(built.keys[i], i * kBlockSize, previous);
    previous = built.keys[i];
  }
  built.bytes.resize(builder.size());
  builder.Write(kNumber, built.bytes.data());
  built.bytes.shrink_to_fit();
  const uint64_t data_size = built.keys.size() * kBlockSize;
  EXPECT_FALSE(
      SegmentFences::FindDamage(built.bytes, builder.count(), data_size, kBlockSize, kNumber)
          .has_value());
  built.fences = SegmentFences(built.bytes.data(), builder.count(), data_size, kBlockSize);
  return built;
}

void ExpectFound(const Built& built, const std::string& key) {
  const size_t first = static_cast<size_t>(
      std::lower_bound(built.keys.begin(), built.keys.end(), key) - built.keys.begin());
  const size_t found = built.fences.Find(key);
  // The first record at or after the key begins block `first`: the search may begin there, or in
  // the block before it.
  ASSERT_LT(found, built.keys.size());
  EXPECT_TRUE(found == first || found + 1 == first) << found << " for " << first;
}

TEST(SegmentFences, EachKeyIsFoundByTheBlockThatLeadsToIt) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> keys(1 + random() % 50);
    const std::string prefix(random() % 14, 'p');
    const unsigned letters = round % 3 == 0 ? 2 : 256;
    for (std::string& key : keys) {
      key = prefix;
      for (size_t left = random() % 14; left > 0; --left)
        key.push_back(static_cast<char>(random() % letters));
    }
    std::sort(keys.begin(), keys.end());
    const Built built = BuildFences(keys);
    for (const std::string& key : built.keys) {
      ExpectFound(built, key);
      ExpectFound(built, key + '\0');
      ExpectFound(built, key.substr(0, key.size() / 2));
    }
    ExpectFound(built, "");
    ExpectFound(built, "\xff");
    ExpectFound(built, prefix + std::string(16, '\xff'));
  }
}

TEST(SegmentFences, FencesWithoutAnOrderAreReadWithinTheirBounds) {
  // A faulty builder may write these with the right checksums: the key of fence 2 is empty, and its
  // bytes belong to the next one.
  Built built = BuildFences({"zza", "zzzb1", "zzzb2", "zzzb3"});
  char* const ends = built.bytes.data() + 4 * sizeof(uint64_t);
  EncodeFixed32(ends + 8, DecodeFixed32(ends + 4));
  ASSERT_EQ(built.fences.Key(2), "");
  built.fences = SegmentFences(built.bytes.data(), 4, 4 * kBlockSize, kBlockSize);
  for (const char* const key : {"", "b", "zzz", "zzz1", "zzz2", "zzz3", "zzzz"})
    EXPECT_LT(built.fences.Find(key), 4u);
}

}  // namespace
}  // namespace varve
