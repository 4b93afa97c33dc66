// Dictionary training finds the dictionary for the values of one merge.
//
// It trains on three quarters of the samples and tries the dictionary on the last quarter: one that
// does not make those samples a tenth smaller than they are without it is not worth its memory.
//
// A dictionary outlives the values that it was trained on. So that nothing of a single value stays
// in it, its content is a cover of the samples (db/compression/sample_cover.h): each of its bytes
// belongs to eight neighbouring ones that at least three samples share.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "db/compression/value_dictionary.h"

namespace varve {

// Values that a job has looked at, back to back.
class ValueSamples {
 public:
  // A larger value gives its first bytes alone.
  static constexpr size_t kMostOfValue = size_t{8} << 10;

  void Add(std::string_view value) {
    const std::string_view sample = value.substr(0, kMostOfValue);
    bytes_.append(sample);
    sizes_.push_back(sample.size());
  }
  const std::string& bytes() const { return bytes_; }
  const std::vector<size_t>& sizes() const { return sizes_; }

 private:
  std::string bytes_;
  std::vector<size_t> sizes_;
};

// Returns the dictionary with which a merge writes the values that the samples are from: `present`,
// which may be null, unless a new one of at most `most_bytes` is clearly better; null if neither is
// worth its memory.
// Requires: the samples are of different keys.
std::shared_ptr<const ValueDictionary> ChooseDictionary(
    const ValueSamples& samples, std::shared_ptr<const ValueDictionary> present, uint8_t level,
    size_t most_bytes);

}  // namespace varve
