// The numbers of BITFIELD: what is accepted as a type and an offset, and what becomes of a number
// that doesn't fit.
#include "server/commands/bitfield.h"

#include <gtest/gtest.h>

#include <random>

#include "util/redis_format/bits.h"

namespace varve {
namespace {

constexpr BitFieldOverflow kAll[] = {BitFieldOverflow::kWrap, BitFieldOverflow::kSaturate,
                                     BitFieldOverflow::kFail};

BitFieldType Type(const char* text) { return ParseBitFieldType(text).value(); }

TEST(BitFieldTest, TypesAreALetterAndAWidth) {
  EXPECT_EQ(Type("i1").bits, 1u);
  EXPECT_TRUE(Type("i64").is_signed);
  EXPECT_EQ(Type("u63").Max(), INT64_MAX);
  EXPECT_EQ(Type("i64").Min(), INT64_MIN);
  EXPECT_EQ(Type("i1").Min(), -1);
  EXPECT_EQ(Type("i1").Max(), 0);
  for (const char* bad :
       {"", "u", "i", "u0", "i0", "u64", "i65", "U8", "I8", "8", "u-1", "u08", "u8 ", "x8"}) {
    EXPECT_FALSE(ParseBitFieldType(bad).has_value()) << bad;
  }
}

TEST(BitFieldTest, OffsetsCountBitsOrFields) {
  EXPECT_EQ(ParseFieldOffset("100", 8), 100u);
  EXPECT_EQ(ParseFieldOffset("#100", 8), 800u);
  EXPECT_EQ(ParseFieldOffset("#536870911", 8), 4294967288u);
  EXPECT_EQ(ParseBitOffset("4294967295"), 4294967295u);
  for (const char* bad : {"", "#", "-1", "#-1", "##1", "4294967296", "#536870912",
                          "#2305843009213693952", "01", "1 "}) {
    EXPECT_FALSE(ParseFieldOffset(bad, 8).has_value()) << bad;
  }
  EXPECT_FALSE(ParseBitOffset("#1").has_value());
}

TEST(BitFieldTest, FieldsReadBackWithTheirSign) {
  std::string bytes(9, '\0');
  WriteBits(&bytes, 3, 5, 0x1Fu);
  EXPECT_EQ(ReadField(bytes, Type("i5"), 3), -1);
  EXPECT_EQ(ReadField(bytes, Type("u5"), 3), 31);
  WriteBits(&bytes, 1, 64, uint64_t{1} << 63);
  EXPECT_EQ(ReadField(bytes, Type("i64"), 1), INT64_MIN);
  EXPECT_EQ(ReadField(bytes, Type("u63"), 1), int64_t{1} << 62);
}

// Every sum of small fields, beside arithmetic on wider integers.
TEST(BitFieldTest, SumsWrapSaturateOrFail) {
  for (const char* name : {"i1", "i2", "i5", "u1", "u5"}) {
    const BitFieldType type = Type(name);
    const int64_t modulus = int64_t{1} << type.bits;
    for (int64_t number = type.Min(); number <= type.Max(); ++number) {
      for (int64_t increment = -100; increment <= 100; ++increment) {
        const int64_t sum = number + increment;
        const int64_t wrapped = ((sum - type.Min()) % modulus + modulus) % modulus + type.Min();
        const bool fits = sum == wrapped;
        EXPECT_EQ(FitSum(type, number, increment, BitFieldOverflow::kWrap), wrapped);
        EXPECT_EQ(FitSum(type, number, increment, BitFieldOverflow::kSaturate),
                  std::max(type.Min(), std::min(type.Max(), sum)));
        EXPECT_EQ(FitSum(type, number, increment, BitFieldOverflow::kFail).has_value(), fits);
      }
    }
  }
}

TEST(BitFieldTest, TheWidestFieldsOverflowWithoutHarm) {
  const BitFieldType wide = Type("i64");
  EXPECT_EQ(FitSum(wide, INT64_MAX, 1, BitFieldOverflow::kWrap), INT64_MIN);
  EXPECT_EQ(FitSum(wide, INT64_MAX, 1, BitFieldOverflow::kSaturate), INT64_MAX);
  EXPECT_EQ(FitSum(wide, INT64_MIN, INT64_MIN, BitFieldOverflow::kWrap), 0);
  EXPECT_EQ(FitSum(wide, INT64_MIN, -1, BitFieldOverflow::kSaturate), INT64_MIN);
  EXPECT_EQ(FitSum(wide, INT64_MIN, -1, BitFieldOverflow::kFail), std::nullopt);
  EXPECT_EQ(FitSum(Type("u63"), INT64_MAX, 1, BitFieldOverflow::kWrap), 0);
  EXPECT_EQ(FitSum(Type("u63"), INT64_MAX, INT64_MAX, BitFieldOverflow::kSaturate), INT64_MAX);
  EXPECT_EQ(FitSum(Type("u63"), 5, INT64_MIN, BitFieldOverflow::kSaturate), 0);
  EXPECT_EQ(FitSum(Type("u63"), 5, INT64_MIN, BitFieldOverflow::kWrap), 5);
}

TEST(BitFieldTest, ValuesAreFittedAsSums) {
  for (const BitFieldOverflow overflow : kAll) {
    EXPECT_EQ(FitValue(Type("i8"), -128, overflow), -128);
    EXPECT_EQ(FitValue(Type("u8"), 255, overflow), 255);
  }
  EXPECT_EQ(FitValue(Type("i8"), 300, BitFieldOverflow::kWrap), 44);
  EXPECT_EQ(FitValue(Type("i8"), INT64_MIN, BitFieldOverflow::kSaturate), -128);
  EXPECT_EQ(FitValue(Type("u8"), -1, BitFieldOverflow::kWrap), 255);
  EXPECT_EQ(FitValue(Type("u8"), -1, BitFieldOverflow::kSaturate), 255);
  EXPECT_EQ(FitValue(Type("u8"), 256, BitFieldOverflow::kFail), std::nullopt);
}

}  // namespace
}  // namespace varve
