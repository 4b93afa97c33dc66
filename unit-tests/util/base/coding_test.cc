#include "util/base/coding.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace varve {
namespace {

using namespace std::string_literals;

std::vector<uint64_t> InterestingNumbers() {
  std::vector<uint64_t> numbers = {0, 1, 300, std::numeric_limits<uint64_t>::max()};
  for (int bit = 1; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    numbers.insert(numbers.end(), {power - 1, power, power + 1});
  }
  return numbers;
}

TEST(CodingTest, LeadingWordsCompareLikeTheTextsBeginnings) {
  const std::vector<std::string> ordered = {"",         "\0\1"s,    "a", "a\1",  "ab",  "abcdefg",
                                            "abcdefgh", "abcdefgi", "b", "\x80", "\xff"};
  for (size_t i = 1; i < ordered.size(); ++i)
    EXPECT_LT(LeadingWord(ordered[i - 1]), LeadingWord(ordered[i])) << i;
  EXPECT_EQ(LeadingWord("abcdefgh"), LeadingWord("abcdefghi"));
  EXPECT_EQ(LeadingWord("ab"), 0x6162000000000000u);
}

// Appends the bytes that `encode` writes for `value`.
template <typename Value>
void Append(std::string* out, void (*encode)(char*, Value), Value value) {
  char buffer[sizeof(Value)];
  encode(buffer, value);
  out->append(buffer, sizeof(Value));
}

// Golden bytes: these encodings are on disk, so they never change.
TEST(CodingTest, EncodingsAreTheseBytes) {
  std::string out;
  PutFixed32(&out, 0x01020304);
  PutFixed64(&out, 0x0102030405060708);
  EXPECT_EQ(out, "\x04\x03\x02\x01\x08\x07\x06\x05\x04\x03\x02\x01");

  out.clear();
  Append<uint64_t>(&out, EncodeBigEndian64, 0x0102030405060708);
  EXPECT_EQ(out, "\x01\x02\x03\x04\x05\x06\x07\x08");

  out.clear();
  PutVarint32(&out, 0);
  PutVarint32(&out, 127);
  PutVarint32(&out, 128);
  PutVarint32(&out, 300);
  PutVarint64(&out, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(out, "\x00\x7f\x80\x01\xac\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);

  out.clear();
  PutLengthPrefixed(&out, "abc");
  PutLengthPrefixed(&out, "");
  EXPECT_EQ(out, "\x03"s + "abc" + "\x00"s);
}

TEST(CodingTest, NumbersOfOtherProgramsAreReadFromTheseBytes) {
  EXPECT_EQ(DecodeFixed16("\x02\x81"), 0x8102);
  EXPECT_EQ(DecodeBigEndian32("\x81\x02\x03\x04"), 0x81020304u);
}

TEST(CodingTest, FixedNumbersRoundTrip) {
  for (uint64_t number : InterestingNumbers()) {
    char buffer[8];
    EncodeFixed64(buffer, number);
    EXPECT_EQ(DecodeFixed64(buffer), number);
    EncodeBigEndian64(buffer, number);
    EXPECT_EQ(DecodeBigEndian64(buffer), number);
    EncodeFixed32(buffer, static_cast<uint32_t>(number));
    EXPECT_EQ(DecodeFixed32(buffer), static_cast<uint32_t>(number));
  }
}

TEST(CodingTest, BigEndianBytesSortLikeTheirNumbers) {
  for (uint64_t low : InterestingNumbers()) {
    for (uint64_t high : InterestingNumbers()) {
      std::string a, b;
      Append<uint64_t>(&a, EncodeBigEndian64, low);
      Append<uint64_t>(&b, EncodeBigEndian64, high);
      EXPECT_EQ(a < b, low < high);
    }
  }
}

TEST(CodingTest, VarintsRoundTripAndHaveThePredictedLength) {
  for (uint64_t number : InterestingNumbers()) {
    std::string out;
    PutVarint64(&out, number);
    EXPECT_EQ(out.size(), VarintLength(number));
    uint64_t decoded = ~number;
    EXPECT_EQ(DecodeVarint64(out.data(), out.data() + out.size(), &decoded),
              out.data() + out.size());
    EXPECT_EQ(decoded, number);

    uint32_t decoded32 = 7;
    const char* end = DecodeVarint32(out.data(), out.data() + out.size(), &decoded32);
    if (number <= std::numeric_limits<uint32_t>::max()) {
      EXPECT_EQ(end, out.data() + out.size());
      EXPECT_EQ(decoded32, number);
    } else {
      EXPECT_EQ(end, nullptr) << number;
      EXPECT_EQ(decoded32, 7u) << "a refused varint changes nothing";
    }
  }
}

TEST(CodingTest, ATruncatedVarintIsRefusedAtEveryLength) {
  for (uint64_t number : InterestingNumbers()) {
    std::string out;
    PutVarint64(&out, number);
    for (size_t length = 0; length < out.size(); ++length) {
      uint64_t value = 0;
      EXPECT_EQ(DecodeVarint64(out.data(), out.data() + length, &value), nullptr);
    }
  }
}

TEST(CodingTest, OverlongVarintsAreRefused) {
  uint32_t value32 = 0;
  uint64_t value64 = 0;
  for (const std::string& bytes : {"\x80\x00"s, "\xff\x00"s, "\x80\x80\x80\x00"s}) {
    EXPECT_EQ(DecodeVarint32(bytes.data(), bytes.data() + bytes.size(), &value32), nullptr);
    EXPECT_EQ(DecodeVarint64(bytes.data(), bytes.data() + bytes.size(), &value64), nullptr);
  }
  const std::string beyond32 = "\xff\xff\xff\xff\x1f";
  EXPECT_EQ(DecodeVarint32(beyond32.data(), beyond32.data() + beyond32.size(), &value32), nullptr);
  const std::string beyond64 = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02";
  EXPECT_EQ(DecodeVarint64(beyond64.data(), beyond64.data() + beyond64.size(), &value64), nullptr);
  const std::string endless(20, '\xff');
  EXPECT_EQ(DecodeVarint32(endless.data(), endless.data() + endless.size(), &value32), nullptr);
  EXPECT_EQ(DecodeVarint64(endless.data(), endless.data() + endless.size(), &value64), nullptr);
}

TEST(ByteReaderTest, ReadsBackWhatWasPut) {
  std::string out;
  out.push_back('\xfe');
  out += "\x10\x00"s;
  PutFixed32(&out, 32);
  PutFixed64(&out, 64);
  PutVarint32(&out, 3232);
  PutVarint64(&out, uint64_t{1} << 60);
  PutLengthPrefixed(&out, "prefixed");
  out += "tail";

  ByteReader reader(out);
  uint8_t byte = 0;
  uint32_t varint32 = 0;
  uint64_t fixed64 = 0, varint64 = 0;
  std::string_view fixed16, fixed32, prefixed, tail;
  EXPECT_TRUE(reader.ReadByte(&byte));
  EXPECT_TRUE(reader.ReadBytes(2, &fixed16));
  EXPECT_TRUE(reader.ReadBytes(4, &fixed32));
  EXPECT_TRUE(reader.ReadFixed64(&fixed64));
  EXPECT_TRUE(reader.ReadVarint32(&varint32));
  EXPECT_TRUE(reader.ReadVarint64(&varint64));
  EXPECT_TRUE(reader.ReadLengthPrefixed(&prefixed));
  EXPECT_EQ(reader.position(), out.size() - 4);
  EXPECT_EQ(reader.rest(), "tail");
  EXPECT_TRUE(reader.ReadBytes(4, &tail));
  EXPECT_TRUE(reader.empty());
  EXPECT_EQ(byte, 0xfe);
  EXPECT_EQ(DecodeFixed16(fixed16.data()), 16);
  EXPECT_EQ(DecodeFixed32(fixed32.data()), 32u);
  EXPECT_EQ(fixed64, 64u);
  EXPECT_EQ(varint32, 3232u);
  EXPECT_EQ(varint64, uint64_t{1} << 60);
  EXPECT_EQ(prefixed, "prefixed");
  EXPECT_EQ(tail, "tail");
}

TEST(ByteReaderTest, AFailedReadConsumesNothing) {
  const std::string input = "\x05"s + "abc";
  ByteReader reader(input);
  std::string_view bytes;
  uint64_t fixed64 = 0;
  EXPECT_FALSE(reader.ReadLengthPrefixed(&bytes));
  EXPECT_FALSE(reader.ReadBytes(5, &bytes));
  EXPECT_FALSE(reader.ReadFixed64(&fixed64));
  EXPECT_EQ(reader.position(), 0u);
  EXPECT_TRUE(reader.ReadBytes(4, &bytes));
  EXPECT_TRUE(reader.empty());
  uint8_t byte = 0;
  uint64_t varint64 = 0;
  EXPECT_FALSE(reader.ReadByte(&byte));
  EXPECT_FALSE(reader.ReadVarint64(&varint64));
  EXPECT_TRUE(reader.ReadBytes(0, &bytes)) << "nothing can always be read";
}

TEST(ByteReaderTest, AnEmptyDefaultViewIsSafe) {
  ByteReader reader{std::string_view()};
  uint32_t value = 0;
  std::string_view bytes;
  EXPECT_FALSE(reader.ReadVarint32(&value));
  EXPECT_FALSE(reader.ReadLengthPrefixed(&bytes));
  EXPECT_TRUE(reader.empty());
}

}  // namespace
}  // namespace varve
