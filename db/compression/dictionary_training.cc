#include "db/compression/dictionary_training.h"

#include <zdict.h>

#include <algorithm>
#include <utility>

#include "db/compression/value_codec.h"

namespace varve {
namespace {

constexpr size_t kTrialPart = 4;  // each fourth sample is for the trial
constexpr size_t kGainedPart = 10;
// zstd trains nothing useful from less.
constexpr size_t kFewestSamples = 32;
constexpr size_t kSmallestDictionary = 1024;

// The samples in two heaps.
struct Heaps {
  std::string training;
  std::vector<size_t> training_sizes;
  std::vector<std::string_view> trial;
};

Heaps Divide(const ValueSamples& samples) {
  Heaps heaps;
  std::string_view rest = samples.bytes();
  for (size_t i = 0; i < samples.sizes().size(); ++i) {
    const std::string_view sample = rest.substr(0, samples.sizes()[i]);
    rest.remove_prefix(sample.size());
    if (i % kTrialPart == kTrialPart - 1) {
      heaps.trial.push_back(sample);
    } else {
      heaps.training.append(sample);
      heaps.training_sizes.push_back(sample.size());
    }
  }
  return heaps;
}

uint64_t StoredSize(const std::vector<std::string_view>& values,
                    std::shared_ptr<const ValueDictionary> dictionary, uint8_t level) {
  ValueCompressor compressor(std::move(dictionary));
  uint64_t bytes = 0;
  for (const std::string_view value : values) {
    const size_t size = compressor.Compress({CompressionMethod::kZstd, level}, value).size();
    bytes += size == 0 ? value.size() : size;
  }
  return bytes;
}

std::shared_ptr<const ValueDictionary> Train(const Heaps& heaps, size_t most_bytes) {
  if (heaps.training_sizes.size() < kFewestSamples || most_bytes < kSmallestDictionary)
    return nullptr;
  std::string content(std::min(most_bytes, kMaxDictionarySize), '\0');
  const size_t size = ZDICT_trainFromBuffer(content.data(), content.size(), heaps.training.data(),
                                            heaps.training_sizes.data(),
                                            static_cast<unsigned>(heaps.training_sizes.size()));
  // Values that have nothing in common are no error.
  if (ZDICT_isError(size) != 0) return nullptr;
  content.resize(size);
  auto dictionary = ValueDictionary::Create(std::move(content));
  return dictionary.ok() ? *std::move(dictionary) : nullptr;
}

}  // namespace

std::shared_ptr<const ValueDictionary> ChooseDictionary(
    const ValueSamples& samples, std::shared_ptr<const ValueDictionary> present, uint8_t level,
    size_t most_bytes) {
  const Heaps heaps = Divide(samples);
  if (heaps.trial.empty()) return nullptr;
  const uint64_t without = StoredSize(heaps.trial, nullptr, level);
  const auto is_worth_it = [&](const std::shared_ptr<const ValueDictionary>& dictionary) {
    return dictionary != nullptr &&
           StoredSize(heaps.trial, dictionary, level) <= without - without / kGainedPart;
  };
  if (is_worth_it(present)) return present;
  std::shared_ptr<const ValueDictionary> trained = Train(heaps, most_bytes);
  return is_worth_it(trained) ? trained : nullptr;
}

}  // namespace varve
