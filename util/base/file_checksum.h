// The checksum of a whole file, XXH3-64, of bytes that come in pieces.
//
// Thread-safety: one thread at a time uses a checksum.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace varve {

class FileChecksum {
 public:
  FileChecksum() : state_(std::make_unique<XXH3_state_t>()) { XXH3_64bits_reset(state_.get()); }

  void Add(std::string_view bytes) { XXH3_64bits_update(state_.get(), bytes.data(), bytes.size()); }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t> state_;
};

}  // namespace varve
