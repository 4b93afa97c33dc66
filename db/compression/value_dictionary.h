// A value dictionary is what the values of one segment have in common, trained by zstd. A segment
// stores the content (db/segment/segment_dictionary.h); readers decompress with it.
//
// Thread-safety: a dictionary is immutable and may be used by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct ZSTD_DDict_s;  // of zstd.h

namespace varve {

// A merge trains no larger one; a reader takes no larger one from a file.
inline constexpr size_t kMaxDictionarySize = size_t{16} << 10;

class ValueDictionary {
 public:
  // Returns InvalidArgument if zstd does not take the content for a dictionary, or it is larger
  // than kMaxDictionarySize.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const ValueDictionary>> Create(
      std::string content);
  ~ValueDictionary();
  ValueDictionary(const ValueDictionary&) = delete;
  ValueDictionary& operator=(const ValueDictionary&) = delete;

  std::string_view content() const { return content_; }
  const ZSTD_DDict_s* for_decompression() const { return prepared_; }
  // Returns the bytes of memory that it takes.
  size_t charge() const { return charge_; }

 private:
  explicit ValueDictionary(std::string content);

  const std::string content_;
  ZSTD_DDict_s* const prepared_;  // refers to content_; null if zstd refuses it
  const size_t charge_;
};

// Returns whether what was compressed with one of them reads with the other one. Null stands for no
// dictionary.
bool AreEqual(const ValueDictionary* a, const ValueDictionary* b);

}  // namespace varve
