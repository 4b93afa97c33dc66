// Whole numbers: digits alone, and none beyond the type.
#include "util/base/whole_number.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace varve {
namespace {

TEST(WholeNumberTest, ReadsDigitsUpToTheLargestOfTheType) {
  uint16_t port = 0;
  EXPECT_TRUE(ParseWholeNumber("65535", &port));
  EXPECT_EQ(port, 65535);
  EXPECT_TRUE(ParseWholeNumber("007", &port));
  EXPECT_EQ(port, 7);
  EXPECT_FALSE(ParseWholeNumber("65536", &port));
  int64_t offset = -1;
  EXPECT_TRUE(ParseWholeNumber("0", &offset));
  EXPECT_EQ(offset, 0);
  EXPECT_TRUE(ParseWholeNumber("9223372036854775807", &offset));
  EXPECT_EQ(offset, INT64_MAX);
  EXPECT_FALSE(ParseWholeNumber("9223372036854775808", &offset));
  uint64_t id = 0;
  EXPECT_TRUE(ParseWholeNumber("FEdcba9876543210", &id, 16));
  EXPECT_EQ(id, 0xfedcba9876543210);
  EXPECT_FALSE(ParseWholeNumber("10000000000000000", &id, 16));
}

TEST(WholeNumberTest, RefusesWhatIsNotDigitsAlone) {
  int64_t number = 0;
  for (const char* wrong : {"", "-1", "-0", "+1", " 1", "1 ", "1.0", "0x1", "a", "1a", "-"})
    EXPECT_FALSE(ParseWholeNumber(wrong, &number)) << wrong;
  for (const char* wrong : {"", "-a", "+a", " a", "a ", "0xa", "g"})
    EXPECT_FALSE(ParseWholeNumber(wrong, &number, 16)) << wrong;
}

}  // namespace
}  // namespace varve
