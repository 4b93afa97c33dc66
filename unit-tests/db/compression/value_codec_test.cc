// Values are compressed where that saves enough, and what was compressed is read back whole or not
// at all.
#include "db/compression/value_codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "db/compression/dictionary_training.h"
#include "fmt/format.h"

namespace varve {
namespace {

constexpr Compression kLz4{CompressionMethod::kLz4, 0};
constexpr Compression kZstd{CompressionMethod::kZstd, kDefaultZstdLevel};

std::string RandomBytes(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string Json(uint64_t number) {
  std::mt19937_64 random(number);
  return fmt::format(
      "{{\"id\":{},\"secret\":\"{:016x}\",\"name\":\"customer {}\",\"address\":{{\"street\":\"Long "
      "Street {}\",\"city\":\"{}\",\"country\":\"Germany\"}},\"active\":{},\"orders\":{}}}",
      number, random(), random() % 1000, random() % 200, random() % 2 == 0 ? "Berlin" : "Hamburg",
      random() % 2 == 0 ? "true" : "false", random() % 50);
}

ValueSamples JsonSamples(uint64_t count) {
  ValueSamples samples;
  for (uint64_t i = 0; i < count; ++i) samples.Add(Json(i));
  return samples;
}

// The plain value, or "(damaged)".
std::string Decompressed(std::string_view bytes, const ValueDictionary* dictionary = nullptr) {
  CompressedValue value;
  if (!ParseCompressedValue(bytes, &value)) return "(damaged)";
  std::string plain(value.plain_size, '\0');
  return DecompressValue(value, dictionary, plain.data()) ? plain : "(damaged)";
}

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return hex;
}

std::string Bytes(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

TEST(CompressionTextTest, IsReadAndWritten) {
  EXPECT_EQ(ParseCompression("none"), Compression());
  EXPECT_EQ(ParseCompression("LZ4"), kLz4);
  EXPECT_EQ(ParseCompression("zstd"), kZstd);
  EXPECT_EQ(ParseCompression("zstd:19"), (Compression{CompressionMethod::kZstd, 19}));
  for (const char* wrong : {"", "gzip", "zstd:", "zstd:0", "zstd:20", "zstd:3x", "zstd 3", "lz4:1"})
    EXPECT_FALSE(ParseCompression(wrong).has_value()) << wrong;
  for (const char* text : {"none", "lz4", "zstd", "zstd:1", "zstd:19"})
    EXPECT_EQ(FormatCompression(*ParseCompression(text)), text);
}

TEST(ValueCodecTest, GoldenBytes) {
  ValueCompressor compressor(nullptr);
  const std::string plain(100, 'a');
  // 100 * 4 + 1 as a varint, then an LZ4 block; 100 * 4 + 2, then a zstd frame without its magic.
  EXPECT_EQ(Hex(compressor.Compress(kLz4, plain)), "91031f6101004b506161616161");
  EXPECT_EQ(Decompressed(Bytes("91031f6101004b506161616161")), plain);
  // Another version of zstd may choose another frame, and must read this one.
  EXPECT_EQ(Hex(compressor.Compress(kZstd, plain)).substr(0, 4), "9203");
  EXPECT_EQ(Decompressed(Bytes("9203000045000010616101003f012c")), plain);
}

TEST(ValueCodecTest, ReadsWhatItCompressed) {
  for (const Compression& how : {kLz4, kZstd, Compression{CompressionMethod::kZstd, 19}}) {
    ValueCompressor compressor(nullptr);
    for (const size_t size : {60u, 700u, 5000u, 300'000u}) {
      std::string plain;
      for (uint64_t i = 0; plain.size() < size; ++i) plain += Json(i % 3);
      plain.resize(size, 'a');
      if (size == 60) plain.assign(size, 'z');
      const std::string_view compressed = compressor.Compress(how, plain);
      ASSERT_FALSE(compressed.empty()) << size;
      EXPECT_LE(compressed.size() + std::max<size_t>(32, size / 8), size);
      EXPECT_EQ(PlainSizeOf(compressed), size);
      EXPECT_EQ(Decompressed(compressed), plain);
    }
  }
}

TEST(ValueCodecTest, LeavesAloneWhatSavesTooLittle) {
  ValueCompressor compressor(nullptr);
  for (const Compression& how : {kLz4, kZstd}) {
    EXPECT_TRUE(compressor.Compress(how, "").empty());
    EXPECT_TRUE(compressor.Compress(how, std::string(36, 'a')).empty());
    EXPECT_TRUE(compressor.Compress(how, RandomBytes(4000, 1)).empty());
    // A tenth of it is the same byte.
    EXPECT_TRUE(compressor.Compress(how, RandomBytes(3600, 2) + std::string(400, 'a')).empty());
    EXPECT_FALSE(compressor.Compress(how, RandomBytes(3000, 3) + std::string(1000, 'a')).empty());
  }
  EXPECT_TRUE(compressor.Compress({}, std::string(1000, 'a')).empty());
}

TEST(ValueCodecTest, NeverGivesMoreThanItsHeaderSays) {
  for (const Compression& how : {kLz4, kZstd}) {
    ValueCompressor compressor(nullptr);
    const std::string compressed(compressor.Compress(how, std::string(1000, 'a')));
    CompressedValue value;
    ASSERT_TRUE(ParseCompressedValue(compressed, &value));
    for (const uint32_t size : {0u, 1u, 999u, 1001u}) {
      value.plain_size = size;
      std::string plain(size + 100, '#');
      EXPECT_FALSE(DecompressValue(value, nullptr, plain.data())) << size;
      EXPECT_EQ(plain.substr(size), std::string(100, '#'));
    }
  }
}

TEST(ValueCodecTest, RefusesHeadersThatMakeNoSense) {
  CompressedValue value;
  EXPECT_FALSE(ParseCompressedValue("", &value));
  EXPECT_FALSE(ParseCompressedValue(std::string_view("\0", 1), &value));  // no codec has 0
  EXPECT_FALSE(ParseCompressedValue("\x84", &value));                     // cut short
  EXPECT_FALSE(ParseCompressedValue("\xff\xff\xff\xff\x0f", &value));  // more than a value may have
  // 63 bytes from none, 255 and 256 from one.
  EXPECT_FALSE(ParseCompressedValue(Bytes("fd01"), &value));
  EXPECT_TRUE(ParseCompressedValue(Bytes("fd0700"), &value));
  EXPECT_EQ(value.plain_size, 255u);
  EXPECT_FALSE(ParseCompressedValue(Bytes("810800"), &value));
  EXPECT_TRUE(ParseCompressedValue(Bytes("820800"), &value));
  EXPECT_EQ(Decompressed("\x05x"), "(damaged)");
  EXPECT_EQ(Decompressed("\x07 no dictionary"), "(damaged)");
}

TEST(ValueCodecTest, DamageNeverReadsOutOfBounds) {
  std::mt19937_64 random(5);
  const auto dictionary = ChooseDictionary(JsonSamples(2000), nullptr, 3, kMaxDictionarySize);
  ASSERT_NE(dictionary, nullptr);
  for (const auto& with : {std::shared_ptr<const ValueDictionary>(), dictionary}) {
    for (const Compression& how : {kLz4, kZstd}) {
      ValueCompressor compressor(with);
      const std::string compressed(compressor.Compress(how, Json(1) + Json(2)));
      ASSERT_FALSE(compressed.empty());
      for (int round = 0; round < 2000; ++round) {
        std::string damaged = compressed.substr(0, 1 + random() % compressed.size());
        damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
        if (PlainSizeOf(damaged) < 10'000) (void)Decompressed(damaged, with.get());
      }
    }
  }
}

TEST(DictionaryTest, MakesValuesSmallerThatHaveMuchInCommon) {
  const auto dictionary = ChooseDictionary(JsonSamples(3000), nullptr, 3, kMaxDictionarySize);
  ASSERT_NE(dictionary, nullptr);
  EXPECT_LE(dictionary->content().size(), kMaxDictionarySize);
  EXPECT_GE(dictionary->charge(), dictionary->content().size());
  ValueCompressor with(dictionary), without(nullptr);
  size_t plain = 0, smaller = 0, larger = 0;
  for (uint64_t i = 10'000; i < 10'100; ++i) {
    const std::string value = Json(i);
    const std::string compressed(with.Compress(kZstd, value));
    EXPECT_EQ(Decompressed(compressed, dictionary.get()), value);
    EXPECT_EQ(Decompressed(compressed, nullptr), "(damaged)");
    plain += value.size();
    smaller += compressed.size();
    const size_t alone = without.Compress(kZstd, value).size();
    larger += alone == 0 ? value.size() : alone;
  }
  EXPECT_LT(smaller * 10, plain * 4);
  EXPECT_LT(smaller * 10, larger * 9);
}

TEST(DictionaryTest, HoldsNothingOfASingleValue) {
  const ValueSamples samples = JsonSamples(3000);
  const auto dictionary = ChooseDictionary(samples, nullptr, 3, kMaxDictionarySize);
  ASSERT_NE(dictionary, nullptr);
  for (uint64_t i = 0; i < 3000; ++i) {
    const std::string secret = fmt::format("{:016x}", std::mt19937_64(i)());
    for (size_t at = 0; at + 8 <= secret.size(); ++at)
      ASSERT_EQ(dictionary->content().find(secret.substr(at, 8)), std::string_view::npos) << secret;
  }
}

TEST(DictionaryTest, IsNotThereWhereItGainsTooLittle) {
  ValueSamples random, few;
  for (uint64_t i = 0; i < 2000; ++i) random.Add(RandomBytes(300, i));
  EXPECT_EQ(ChooseDictionary(random, nullptr, 3, kMaxDictionarySize), nullptr);
  for (uint64_t i = 0; i < 20; ++i) few.Add(Json(i));
  EXPECT_EQ(ChooseDictionary(few, nullptr, 3, kMaxDictionarySize), nullptr);
  EXPECT_EQ(ChooseDictionary(JsonSamples(3000), nullptr, 3, 500), nullptr);
  EXPECT_EQ(ChooseDictionary({}, nullptr, 3, kMaxDictionarySize), nullptr);
}

TEST(DictionaryTest, StaysAsLongAsANewOneIsHardlyBetter) {
  const auto first = ChooseDictionary(JsonSamples(3000), nullptr, 3, kMaxDictionarySize);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(ChooseDictionary(JsonSamples(2900), first, 3, kMaxDictionarySize), first);
  // Values of another kind get another one.
  ValueSamples others;
  for (uint64_t i = 0; i < 3000; ++i) {
    others.Add(
        fmt::format("<event time='{}' level='warning'><host>node-{}.cluster.internal</host>"
                    "<text>connection to backend lost, retrying in {} ms</text></event>",
                    i * 7919, i % 90, i % 1000));
  }
  const auto other = ChooseDictionary(others, first, 3, kMaxDictionarySize);
  ASSERT_NE(other, nullptr);
  EXPECT_FALSE(AreEqual(other.get(), first.get()));
  EXPECT_FALSE(AreEqual(nullptr, first.get()));
  EXPECT_TRUE(AreEqual(first.get(), ValueDictionary::Create(std::string(first->content()))->get()));
}

TEST(DictionaryTest, IsRefusedWhereItIsNone) {
  EXPECT_FALSE(ValueDictionary::Create("").ok());
  EXPECT_FALSE(ValueDictionary::Create(RandomBytes(1000, 4)).ok());
  const auto good = ChooseDictionary(JsonSamples(3000), nullptr, 3, kMaxDictionarySize);
  std::string damaged(good->content());
  damaged.replace(8, 200, RandomBytes(200, 5));  // its entropy tables
  EXPECT_FALSE(ValueDictionary::Create(damaged).ok());
  std::string long_one(good->content());
  long_one.resize(kMaxDictionarySize + 1, 'x');
  EXPECT_FALSE(ValueDictionary::Create(long_one).ok());
}

}  // namespace
}  // namespace varve
