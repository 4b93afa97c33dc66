#include "db/compression/dictionary_training.h"

#include <zdict.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "db/compression/value_codec.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kTrialPart = 4;  // each fourth sample is for the trial
constexpr size_t kGainedPart = 10;
// The present dictionary stays if a new one saves no more than this part: values that were
// compressed with it need not be written anew.
constexpr size_t kKeptFor = 32;
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

// Finds out which bytes of a text several samples share.
class SharedBytes {
 public:
  explicit SharedBytes(std::string_view text) : text_(text), maybe_(kMaybeBits) {
    for (size_t at = 0; at + kWindow <= text.size(); ++at) {
      const uint64_t window = DecodeFixed64(&text[at]);
      windows_.try_emplace(window);
      maybe_[MaybeBit(window)] = true;
    }
  }

  // Requires: each sample comes once.
  void Look(std::string_view sample) {
    ++samples_;
    for (size_t at = 0; at + kWindow <= sample.size(); ++at) {
      const uint64_t window = DecodeFixed64(&sample[at]);
      if (!maybe_[MaybeBit(window)]) continue;
      const auto found = windows_.find(window);
      if (found == windows_.end() || found->second.last_sample == samples_) continue;
      found->second.last_sample = samples_;
      ++found->second.samples;
    }
  }

  // Returns the text without the bytes that too few samples share.
  std::string Keep() const {
    std::string kept;
    size_t kept_up_to = 0;
    for (size_t at = 0; at + kWindow <= text_.size(); ++at) {
      if (windows_.at(DecodeFixed64(&text_[at])).samples < kFewestSharing) continue;
      const size_t from = std::max(at, kept_up_to);
      kept_up_to = at + kWindow;
      kept.append(text_.substr(from, kept_up_to - from));
    }
    return kept;
  }

 private:
  static constexpr size_t kWindow = 8;
  static constexpr uint32_t kFewestSharing = 3;
  static constexpr size_t kMaybeBits = size_t{1} << 18;
  static size_t MaybeBit(uint64_t window) { return window * 0x9e3779b97f4a7c15u >> (64 - 18); }

  struct Window {
    uint32_t samples = 0;
    uint32_t last_sample = 0;
  };
  const std::string_view text_;
  std::vector<bool> maybe_;  // few windows of the samples get past it
  std::unordered_map<uint64_t, Window> windows_;
  uint32_t samples_ = 0;
};

// Returns what of a trained dictionary several samples share, as a dictionary of its own; empty if
// that is too little.
std::string WithoutSingleValues(std::string_view trained, const Heaps& heaps, uint8_t level) {
  const size_t header = ZDICT_getDictHeaderSize(trained.data(), trained.size());
  if (ZDICT_isError(header) != 0 || header > trained.size()) return {};
  SharedBytes shared(trained.substr(header));
  std::string_view rest = heaps.training;
  for (const size_t size : heaps.training_sizes) {
    shared.Look(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  const std::string content = shared.Keep();
  std::string dictionary(kMaxDictionarySize, '\0');
  ZDICT_params_t parameters = {};
  parameters.compressionLevel = level;
  const size_t size = ZDICT_finalizeDictionary(
      dictionary.data(), dictionary.size(), content.data(), content.size(), heaps.training.data(),
      heaps.training_sizes.data(), static_cast<unsigned>(heaps.training_sizes.size()), parameters);
  if (ZDICT_isError(size) != 0) return {};
  dictionary.resize(size);
  return dictionary;
}

std::shared_ptr<const ValueDictionary> Train(const Heaps& heaps, uint8_t level, size_t most_bytes) {
  if (heaps.training_sizes.size() < kFewestSamples || most_bytes < kSmallestDictionary)
    return nullptr;
  std::string content(std::min(most_bytes, kMaxDictionarySize), '\0');
  const size_t size = ZDICT_trainFromBuffer(content.data(), content.size(), heaps.training.data(),
                                            heaps.training_sizes.data(),
                                            static_cast<unsigned>(heaps.training_sizes.size()));
  // Values that have nothing in common are no error.
  if (ZDICT_isError(size) != 0) return nullptr;
  content.resize(size);
  content = WithoutSingleValues(content, heaps, level);
  if (content.empty()) return nullptr;
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
  std::shared_ptr<const ValueDictionary> trained = Train(heaps, level, most_bytes);
  const uint64_t with_present = size_with(present), with_trained = size_with(trained);
  const bool keeps_present =
      present != nullptr && with_present - with_present / kKeptFor <= with_trained;
  if (std::min(with_present, with_trained) > without - without / kGainedPart) return nullptr;
  return keeps_present ? present : trained;
}

}  // namespace varve
