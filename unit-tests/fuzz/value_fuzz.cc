// Compressed values: whatever stands in the place of one is decompressed to the size that its
// header says, or refused; and what the compressor makes is read back whole.
//
//   input = [ how: 1; bit 0: with the dictionary, bit 1: compress the bytes first ][ bytes ]
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "db/compression/dictionary_training.h"
#include "db/compression/value_codec.h"
#include "unit-tests/fuzz/fuzz_target.h"

namespace varve::fuzz {
namespace {

// More is not decompressed here: the header may say as much as the bytes can come to.
constexpr uint32_t kMostPlainBytes = 1u << 22;
constexpr Compression kWays[] = {{CompressionMethod::kLz4, 0},
                                 {CompressionMethod::kZstd, 1},
                                 {CompressionMethod::kZstd, kDefaultZstdLevel}};

std::string Text(int number) {
  return "{\"number\":" + std::to_string(number * number % 977) +
         ",\"city\":\"Hamburg\",\"country\":\"Germany\",\"tags\":[\"regular\"],\"state\":\"" +
         (number % 3 == 0 ? "waiting" : "served") + "\"}";
}

const std::shared_ptr<const ValueDictionary>& Dictionary() {
  static const auto* const dictionary = [] {
    ValueSamples samples;
    for (int i = 0; i < 2000; ++i) samples.Add(Text(i) + std::to_string(i));
    return new auto(ChooseDictionary(samples, nullptr, kDefaultZstdLevel, 4096));
  }();
  return *dictionary;
}

void Decompress(std::string_view bytes, const ValueDictionary* dictionary) {
  CompressedValue value;
  if (!ParseCompressedValue(bytes, &value)) return;
  VARVE_FUZZ_REQUIRE(PlainSizeOf(bytes) == value.plain_size);
  VARVE_FUZZ_REQUIRE(value.payload.data() + value.payload.size() == bytes.data() + bytes.size());
  if (value.plain_size > kMostPlainBytes) return;
  const std::unique_ptr<char[]> plain(new char[value.plain_size]);  // exact, for AddressSanitizer
  (void)DecompressValue(value, dictionary, plain.get());
}

void Compress(std::string_view bytes, std::shared_ptr<const ValueDictionary> dictionary) {
  ValueCompressor compressor(dictionary);
  for (const Compression& how : kWays) {
    const std::string_view compressed = compressor.Compress(how, bytes);
    if (compressed.empty()) continue;
    VARVE_FUZZ_REQUIRE(compressed.size() + ValueCompressor::kSavedBytes <= bytes.size());
    CompressedValue value;
    VARVE_FUZZ_REQUIRE(ParseCompressedValue(compressed, &value));
    VARVE_FUZZ_REQUIRE(value.plain_size == bytes.size());
    std::string plain(bytes.size(), '\0');
    VARVE_FUZZ_REQUIRE(DecompressValue(value, dictionary.get(), plain.data()) && plain == bytes);
  }
}

void Run(std::string_view bytes) {
  VARVE_FUZZ_REQUIRE(Dictionary() != nullptr);
  Input input(bytes);
  const uint8_t how = input.Byte();
  const ExactCopy rest(input.Rest());
  const auto dictionary = (how & 1) != 0 ? Dictionary() : std::shared_ptr<const ValueDictionary>();
  (how & 2) != 0 ? Compress(rest.view(), dictionary) : Decompress(rest.view(), dictionary.get());
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const auto& dictionary : {std::shared_ptr<const ValueDictionary>(), Dictionary()}) {
    const char with = dictionary == nullptr ? 0 : 1;
    ValueCompressor compressor(dictionary);
    for (const std::string& plain :
         {std::string(300, 'a'), Text(1) + Text(2) + Text(3), Text(5) + std::string(5000, 'z')}) {
      seeds.push_back(std::string(1, static_cast<char>(with | 2)) + plain);
      for (const Compression& how : kWays) {
        const std::string compressed(compressor.Compress(how, plain));
        seeds.push_back(std::string(1, with) + compressed);
      }
    }
  }
  return seeds;
}

const Announced kTarget({"value", Run, Seeds});

}  // namespace
}  // namespace varve::fuzz
