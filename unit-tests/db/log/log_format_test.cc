#include "db/format/log_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit-tests/db/log/log_test_util.h"
#include "util/base/coding.h"

namespace varve {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(byte) >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

TEST(LogFormatTest, NamesCarryTheNumber) {
  EXPECT_EQ(LogFileName(7), "000007.log");
  EXPECT_EQ(LogFileName(12345678), "12345678.log");
  EXPECT_EQ(ParseLogFileName("000007.log"), 7u);
  EXPECT_EQ(ParseLogFileName("12345678.log"), 12345678u);
  EXPECT_EQ(ParseLogTemporaryName(LogTemporaryName(9)), 9u);
  for (const char* name : {"7.log", "000007.seg", "000007.log.tmp", "00000x.log", "-00007.log",
                           ".log", "000007.logs", "99999999999999999999999.log"}) {
    EXPECT_FALSE(ParseLogFileName(name).has_value()) << name;
  }
}

// The bytes on disk never change: a failure here is a new format version.
TEST(LogFormatTest, GoldenHeaderPage) {
  const std::string page = EncodeLogHeaderPage(0x0102030405060708, 0x1112131415161718, 0x21222324);
  ASSERT_EQ(page.size(), kLogPageSize);
  EXPECT_EQ(Hex(page.substr(0, 40)),
            "56415256454c4f4704000000dc3df064080706050403020118171615141312112423222100000000");
  const std::string without_time = EncodeLogHeaderPage(0x0102030405060708, 0x1112131415161718,
                                                       0x21222324, kLogFormatWithoutTime);
  EXPECT_EQ(Hex(without_time.substr(0, 40)),
            "56415256454c4f4703000000b58a90eb080706050403020118171615141312112423222100000000");
  EXPECT_EQ(page.find_first_not_of('\0', 40), std::string::npos);
  EXPECT_EQ(PreparedLogSize(page), 0x21222324u);
  // As version 1 wrote it.
  std::string first = page;
  first[8] = 1;
  EncodeFixed32(first.data() + 12, 0xe515ebc8);
  EncodeFixed64(first.data() + 32, 0);
  EXPECT_TRUE(CheckLogHeaderPage(first, "f", 0x0102030405060708, 0x1112131415161718).ok());
  EXPECT_EQ(PreparedLogSize(first), 0u);
}

TEST(LogFormatTest, GoldenBlock) {
  std::string block(kLogBlockHeaderSize, '\0');
  const std::string record = testing::MakeRecord(5, "operations", 2);
  block += record;
  EncodeLogBlockHeader(block.data(), {static_cast<uint32_t>(record.size()), 7, 5, 6, 4},
                       testing::kTestStore, 8192);
  EXPECT_EQ(Hex(block),
            "b7ce949d1e000000070000000000000005000000000000000600000000000000"
            "04000000000000003fc933f70a0000000500000000000000020000006f7065726174696f6e73");
  const auto header = DecodeLogBlockHeader(block, 7, testing::kTestStore, 8192);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->payload_size, record.size());
  EXPECT_EQ(header->first, 5u);
  EXPECT_EQ(header->last, 6u);
  EXPECT_EQ(header->durable_mark, 4u);
}

TEST(LogFormatTest, ABlockIsOneOfItsFilePlaceAndStoreOnly) {
  std::string block(kLogBlockHeaderSize, '\0');
  EncodeLogBlockHeader(block.data(), {0, 7, 5, 4, 4}, testing::kTestStore, 8192);
  EXPECT_FALSE(DecodeLogBlockHeader(block, 8, testing::kTestStore, 8192).has_value());
  EXPECT_FALSE(DecodeLogBlockHeader(block, 7, testing::kTestStore, 8200).has_value());
  EXPECT_FALSE(DecodeLogBlockHeader(block, 7, testing::kTestStore + 1, 8192).has_value());
  EXPECT_FALSE(DecodeLogBlockHeader(block.substr(0, 39), 7, testing::kTestStore, 8192).has_value());
  for (size_t bit = 0; bit < 8 * kLogBlockHeaderSize; ++bit) {
    std::string damaged = block;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(DecodeLogBlockHeader(damaged, 7, testing::kTestStore, 8192).has_value()) << bit;
  }
}

TEST(LogFormatTest, HeaderPagesSayWhatIsWrong) {
  const std::string good = EncodeLogHeaderPage(7, 42, 8192);
  EXPECT_TRUE(CheckLogHeaderPage(good, "f", 7, 42).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckLogHeaderPage(good, "f", 7, 43)))
      << "of another store";
  EXPECT_TRUE(absl::IsDataLoss(CheckLogHeaderPage(good, "f", 8, 42))) << "under a wrong name";
  EXPECT_TRUE(absl::IsNotFound(CheckLogHeaderPage("", "f", 7, 42)));
  EXPECT_TRUE(absl::IsNotFound(CheckLogHeaderPage(std::string(kLogPageSize, '\0'), "f", 7, 42)));
  for (size_t i = 0; i < 40; ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_TRUE(absl::IsDataLoss(CheckLogHeaderPage(damaged, "f", 7, 42))) << i;
  }
}

}  // namespace
}  // namespace varve
