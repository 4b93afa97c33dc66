#include "db/compression/value_dictionary.h"

#include <fmt/format.h>
#include <zdict.h>
#include <zstd.h>

#include <new>
#include <utility>

namespace varve {

ValueDictionary::ValueDictionary(std::string content)
    : content_(std::move(content)),
      prepared_(ZSTD_createDDict(content_.data(), content_.size())),
      charge_(sizeof(*this) + content_.capacity() + ZSTD_sizeof_DDict(prepared_)) {}

ValueDictionary::~ValueDictionary() { ZSTD_freeDDict(prepared_); }

absl::StatusOr<std::shared_ptr<const ValueDictionary>> ValueDictionary::Create(
    std::string content) {
  // Without the magic of a dictionary zstd would take any bytes for raw content.
  if (content.size() > kMaxDictionarySize || ZDICT_getDictID(content.data(), content.size()) == 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} bytes are no dictionary of values", content.size()));
  }
  std::shared_ptr<const ValueDictionary> dictionary(new ValueDictionary(std::move(content)));
  if (dictionary->for_decompression() == nullptr)
    return absl::InvalidArgumentError("zstd can't read a dictionary of values");
  return dictionary;
}

bool AreEqual(const ValueDictionary* a, const ValueDictionary* b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->content() == b->content();
}

}  // namespace varve
