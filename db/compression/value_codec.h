// The value codec compresses single values, and decompresses them (db/format/compressed_value.h).
//
// Decompressing is a stateless function, which keeps zstd's working memory for each thread.
// Compressing belongs to one job, because zstd prepares a dictionary for each level.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "db/compression/value_dictionary.h"
#include "db/format/compressed_value.h"
#include "varve/compression.h"

struct ZSTD_CCtx_s;   // of zstd.h
struct ZSTD_CDict_s;  // of zstd.h

namespace varve {

// Decompresses `value` into `plain`, which has room for value.plain_size bytes. Returns false if
// the payload is damaged, or needs a dictionary and `dictionary` is null.
//
// Thread-safety: may be called by any thread. Throws bad_alloc where there is no memory.
bool DecompressValue(const CompressedValue& value, const ValueDictionary* dictionary, char* plain);

// Compresses the values of one job.
//
// Thread-safety: a compressor belongs to one thread.
class ValueCompressor {
 public:
  // `dictionary` may be null.
  explicit ValueCompressor(std::shared_ptr<const ValueDictionary> dictionary);
  ~ValueCompressor();
  ValueCompressor(const ValueCompressor&) = delete;
  ValueCompressor& operator=(const ValueCompressor&) = delete;

  // A compressed value saves at least this part of the plain size, and at least so many bytes: less
  // is not worth what each read of it costs.
  static constexpr size_t kSavedPart = 8;
  static constexpr size_t kSavedBytes = 32;

  // Returns the compressed value; empty if compressing does not save enough. The view is valid
  // until the next call.
  std::string_view Compress(const Compression& how, std::string_view plain);
  // Gives back the memory that a huge value took. Its view is no longer valid.
  void GiveBack();

  const std::shared_ptr<const ValueDictionary>& dictionary() const { return dictionary_; }

 private:
  // Returns the size of what it wrote at `at`; 0 if that would be more than `room` bytes.
  size_t CompressWithZstd(uint8_t level, std::string_view plain, char* at, size_t room);

  const std::shared_ptr<const ValueDictionary> dictionary_;
  ZSTD_CCtx_s* context_ = nullptr;
  std::map<uint8_t, ZSTD_CDict_s*> prepared_;  // the dictionary for each level
  int level_ = -1;                             // for which the context is set up; -1: none
  std::string buffer_;
};

}  // namespace varve
