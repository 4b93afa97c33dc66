// Bits of byte strings, each function beside the same done bit by bit.
#include "util/redis_format/bits.h"

#include <gtest/gtest.h>

#include <random>

namespace varve {
namespace {

using namespace std::string_literals;

class BitsTest : public ::testing::Test {
 protected:
  // Mostly runs of equal bytes, so that whole words are skipped and found.
  std::string RandomBytes(size_t most) {
    std::string bytes(random_() % (most + 1), '\0');
    const unsigned kind = random_() % 4;
    for (char& byte : bytes) {
      byte = kind == 0 ? '\0' : kind == 1 ? '\xff' : static_cast<char>(random_());
    }
    if (!bytes.empty()) bytes[random_() % bytes.size()] ^= static_cast<char>(1u << (random_() % 8));
    return bytes;
  }
  static bool Naive(const std::string& bytes, uint64_t bit) {
    return bit / 8 < bytes.size() &&
           ((static_cast<uint8_t>(bytes[bit / 8]) >> (7 - bit % 8)) & 1) != 0;
  }

  std::mt19937 random_{1};
};

TEST_F(BitsTest, BitZeroIsTheHighestOfTheFirstByte) {
  std::string bytes;
  SetBitAt(&bytes, 0, true);
  EXPECT_EQ(bytes, "\x80"s);
  SetBitAt(&bytes, 17, true);
  EXPECT_EQ(bytes, "\x80\0\x40"s);
  SetBitAt(&bytes, 0, false);
  EXPECT_EQ(bytes, "\0\0\x40"s);
  EXPECT_TRUE(BitAt(bytes, 17));
  EXPECT_FALSE(BitAt(bytes, 16));
  EXPECT_FALSE(BitAt(bytes, 1'000'000));
}

TEST_F(BitsTest, CountsAndFindsInAnyRange) {
  for (int round = 0; round < 3000; ++round) {
    const std::string bytes = RandomBytes(40) + "x";
    const uint64_t first = random_() % (bytes.size() * 8);
    const uint64_t last = random_() % (bytes.size() * 8);
    uint64_t ones = 0;
    std::optional<uint64_t> one;
    std::optional<uint64_t> zero;
    for (uint64_t bit = first; bit <= last; ++bit) {
      const bool set = Naive(bytes, bit);
      ones += set ? 1 : 0;
      std::optional<uint64_t>& found = set ? one : zero;
      if (!found) found = bit;
    }
    EXPECT_EQ(CountOnes(bytes, first, last), ones);
    EXPECT_EQ(FindBit(bytes, true, first, last), one);
    EXPECT_EQ(FindBit(bytes, false, first, last), zero);
  }
}

TEST_F(BitsTest, CombinesStringsOfAnyLengths) {
  for (int round = 0; round < 1000; ++round) {
    const std::string a = RandomBytes(30);
    const std::string b = RandomBytes(30);
    const size_t bits = std::max(a.size(), b.size()) * 8;
    std::string both = a;
    std::string any = a;
    std::string one = a;
    std::string inverted = a;
    CombineBits(BitOperation::kAnd, b, &both);
    CombineBits(BitOperation::kOr, b, &any);
    CombineBits(BitOperation::kXor, b, &one);
    InvertBits(&inverted);
    EXPECT_EQ(both.size() * 8, bits);
    EXPECT_EQ(any.size() * 8, bits);
    EXPECT_EQ(one.size() * 8, bits);
    for (size_t bit = 0; bit < bits; ++bit) {
      EXPECT_EQ(Naive(both, bit), Naive(a, bit) && Naive(b, bit));
      EXPECT_EQ(Naive(any, bit), Naive(a, bit) || Naive(b, bit));
      EXPECT_EQ(Naive(one, bit), Naive(a, bit) != Naive(b, bit));
      if (bit < a.size() * 8) {
        EXPECT_NE(Naive(inverted, bit), Naive(a, bit));
      }
    }
  }
}

TEST_F(BitsTest, NumbersOfAnyWidthAtAnyPlace) {
  for (int round = 0; round < 3000; ++round) {
    const std::string before = RandomBytes(20) + std::string(9, 'x');
    const unsigned bits = 1 + random_() % 64;
    const uint64_t offset = random_() % (before.size() * 8 - bits + 1);
    uint64_t expected = 0;
    for (unsigned i = 0; i < bits; ++i)
      expected = expected << 1 | (Naive(before, offset + i) ? 1 : 0);
    EXPECT_EQ(ReadBits(before, offset, bits), expected);
    const uint64_t value = uint64_t{random_()} << 32 | random_();
    std::string after = before;
    WriteBits(&after, offset, bits, value);
    EXPECT_EQ(ReadBits(after, offset, bits), value << (64 - bits) >> (64 - bits));
    for (uint64_t bit = 0; bit < before.size() * 8; ++bit) {
      if (bit < offset || bit >= offset + bits) {
        EXPECT_EQ(Naive(after, bit), Naive(before, bit));
      }
    }
  }
  EXPECT_EQ(ReadBits("\xff", 4, 8), 0xF0u);  // behind the end: zeros
  EXPECT_EQ(ReadBits("", 1000, 64), 0u);
}

}  // namespace
}  // namespace varve
