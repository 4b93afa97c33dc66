#include "db/compression/dictionary_training.h"

#include <zdict.h>

#include <algorithm>
#include <utility>

#include "db/compression/sample_cover.h"
#include "db/compression/value_codec.h"

namespace varve {
namespace {

constexpr size_t kTrialPart = 4;  // each fourth sample is for the trial
constexpr size_t kGainedPart = 10;
// The present dictionary stays if a new one saves no more than this part: values that were
// compressed with it need not be written anew.
constexpr size_t kKeptFor = 32;
constexpr size_t kFewestSamples = 32;
constexpr size_t kSmallestDictionary = 1024;
// zstd puts its entropy tables in front of the content, and takes less of the content if they need
// more.
constexpr size_t kRoomForTables = 256;

// The samples in two heaps.
struct Heaps {
  SampleText training;
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
      heaps.training.bytes.append(sample);
      heaps.training.sizes.push_back(sample.size());
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

std::shared_ptr<const ValueDictionary> Train(const SampleText& training, uint8_t level,
                                             size_t most_bytes) {
  if (training.sizes.size() < kFewestSamples || most_bytes < kSmallestDictionary) return nullptr;
  const size_t room = std::min(most_bytes, kMaxDictionarySize);
  const std::string cover = CoverOf(training, room - kRoomForTables);
  if (cover.empty()) return nullptr;
  std::string content(room, '\0');
  ZDICT_params_t parameters = {};
  parameters.compressionLevel = level;
  const size_t size = ZDICT_finalizeDictionary(
      content.data(), content.size(), cover.data(), cover.size(), training.bytes.data(),
      training.sizes.data(), static_cast<unsigned>(training.sizes.size()), parameters);
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
  const auto size_with = [&](const std::shared_ptr<const ValueDictionary>& dictionary) {
    return dictionary == nullptr ? UINT64_MAX : StoredSize(heaps.trial, dictionary, level);
  };
  const uint64_t without = StoredSize(heaps.trial, nullptr, level);
  std::shared_ptr<const ValueDictionary> trained = Train(heaps.training, level, most_bytes);
  const uint64_t with_present = size_with(present), with_trained = size_with(trained);
  const bool keeps_present =
      present != nullptr && with_present - with_present / kKeptFor <= with_trained;
  if (std::min(with_present, with_trained) > without - without / kGainedPart) return nullptr;
  return keeps_present ? present : trained;
}

}  // namespace varve
