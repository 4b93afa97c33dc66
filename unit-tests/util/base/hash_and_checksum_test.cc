#include <gtest/gtest.h>

#include <set>
#include <string>

#include "util/base/checksum.h"
#include "util/base/hash.h"

namespace varve {
namespace {

// Golden values: the hash places keys in offset tables on disk and the checksum guards all files,
// so neither changes.
TEST(HashTest, ValuesAreFixedForever) {
  EXPECT_EQ(HashKey(""), 0x2d06800538d394c2u);
  EXPECT_EQ(HashKey("abc"), 0x78af5f94892f3950u);
}

TEST(HashTest, KeysThatDifferInOneByteHashApart) {
  std::set<uint64_t> hashes;
  for (int i = 0; i < 100'000; ++i) hashes.insert(HashKey("key:" + std::to_string(i)));
  EXPECT_EQ(hashes.size(), 100'000u);
  EXPECT_NE(HashKey(std::string_view("a\0", 2)), HashKey("a"));
}

TEST(ChecksumTest, IsTheLowHalfOfTheHashWhenTheSeedIsZero) {
  EXPECT_EQ(Checksum("abc", 0), 0x892f3950u);
}

TEST(ChecksumTest, FindsEveryFlippedBit) {
  std::string data(4096, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 131);
  const uint32_t intact = Checksum(data, 42);
  for (size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(Checksum(data, 42), intact) << "bit " << bit;
    data[bit / 8] = static_cast<char>(data[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(ChecksumTest, IntactBytesInTheWrongPlaceFail) {
  std::set<uint32_t> sums;
  for (uint64_t seed = 0; seed < 1000; ++seed) sums.insert(Checksum("the same block", seed));
  EXPECT_EQ(sums.size(), 1000u);
  EXPECT_NE(Checksum(std::string(64, '\0'), 1), Checksum(std::string(128, '\0'), 1))
      << "zeros of another length";
  EXPECT_NE(Checksum(std::string(4096, '\0'), 1), 0u) << "a zeroed block is not valid";
}

}  // namespace
}  // namespace varve
