// Keys as the engine orders them: one tree holds every namespace.
//
//   tree key = [ namespace generation: 4 bytes, big-endian ][ user key: 0 .. kMaxKeySize bytes ]
//
// Tree keys compare as unsigned bytes, so a namespace is one contiguous stretch of the tree.
// Emptying a namespace gives it a new generation; records of a dead generation are dropped by
// compaction. Plain values; safe to copy between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "varve/types.h"

namespace varve {

// The stretch of the tree that a namespace lives in at present.
using NamespaceGeneration = uint32_t;

inline constexpr NamespaceGeneration kNoGeneration = 0;  // is never given to a namespace
// The engine's own, of which no user knows: the last stretch of the tree
// (db/format/expiry_index.h).
inline constexpr NamespaceId kExpirySpace = ~NamespaceId{1};
inline constexpr NamespaceGeneration kExpiryGeneration = ~NamespaceGeneration{0};
inline constexpr size_t kGenerationSize = 4;

inline void EncodeGeneration(char* destination, NamespaceGeneration generation) {
  destination[0] = static_cast<char>(generation >> 24);
  destination[1] = static_cast<char>(generation >> 16);
  destination[2] = static_cast<char>(generation >> 8);
  destination[3] = static_cast<char>(generation);
}

// Requires: `tree_key` has at least kGenerationSize bytes.
inline NamespaceGeneration GenerationOf(std::string_view tree_key) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(tree_key.data());
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 |
         uint32_t{bytes[3]};
}

// Requires: `tree_key` has at least kGenerationSize bytes.
inline std::string_view UserKeyOf(std::string_view tree_key) {
  return tree_key.substr(kGenerationSize);
}

// An owned tree key for lookups; keys up to 124 bytes stay on the stack.
class TreeKey {
 public:
  TreeKey(NamespaceGeneration generation, std::string_view user_key)
      : bytes_(kGenerationSize + user_key.size()) {
    EncodeGeneration(bytes_.data(), generation);
    if (!user_key.empty())
      std::memcpy(bytes_.data() + kGenerationSize, user_key.data(), user_key.size());
  }

  std::string_view view() const { return {bytes_.data(), bytes_.size()}; }

 private:
  absl::InlinedVector<char, 128> bytes_;
};

// The first tree key of `generation`, and the first one after it (empty after the last generation:
// no end).
inline std::string FirstTreeKey(NamespaceGeneration generation) {
  std::string key(kGenerationSize, '\0');
  EncodeGeneration(key.data(), generation);
  return key;
}
inline std::string EndTreeKey(NamespaceGeneration generation) {
  return generation == ~NamespaceGeneration{0} ? std::string() : FirstTreeKey(generation + 1);
}

}  // namespace varve
