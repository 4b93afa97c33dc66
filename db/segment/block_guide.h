// The block guide leads a search into the middle of a block of the block cache. Records stand in a
// block back to back, so a search that has nothing else looks at all of them from the first one on,
// and waits for memory at most of them.
//
// The guide names the first record behind each kGuideDistance bytes of the block: where it begins,
// and the four bytes of its key behind those that all keys of the block share. It stands in the
// notes of the cache's entry (structure/clock_cache.h), takes one or two lines of the processor's
// cache, and is made when the block's records are verified. It speaks of whole keys, whatever part
// of them stands in the segment's key base (db/format/key_base.h): one record may hold its whole
// key between two that share it.
//
//   0   2  count
//   2   2  how many first bytes the keys of the block share
//   4  4n  the four bytes of each named record's key behind them, first byte highest, zeros behind
//          the key's end
//   .  2n  where each named record begins in the block
//
// Thread-safety: a builder belongs to one thread; the functions are stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace varve {

inline constexpr size_t kGuideDistance = 512;

// Returns the bytes that the guide of a block may take; 0 if a block of this size has none.
constexpr uint16_t BlockGuideSize(size_t block_size) {
  if (block_size <= kGuideDistance || block_size > UINT16_MAX) return 0;
  return static_cast<uint16_t>(4 + 6 * ((block_size - 1) / kGuideDistance));
}

class BlockGuideBuilder {
 public:
  // `base` is the segment's key base.
  explicit BlockGuideBuilder(std::string_view base) : base_(base) {}

  // Adds a record, whose key is the first `shared` bytes of the base and `rest`. The bytes of the
  // base and of the rests must stay until Write().
  // Requires: offsets ascend, keys do not descend, and `shared` is at most the size of the base.
  void Add(uint32_t shared, std::string_view rest, size_t offset) {
    const KeyParts key = {shared, rest};
    if (offset == 0) first_ = key;
    last_ = key;
    if (offset < next_) return;
    next_ = (offset / kGuideDistance + 1) * kGuideDistance;
    named_.push_back({key, offset});
  }
  // Writes the guide to `size` bytes.
  // Requires: `size` is BlockGuideSize() of the block.
  void Write(size_t size, char* destination) const;

 private:
  struct KeyParts {
    uint32_t shared = 0;
    std::string_view rest;
  };
  struct Named {
    KeyParts key;
    size_t offset;
  };
  const std::string_view base_;
  KeyParts first_, last_;
  size_t next_ = kGuideDistance;
  absl::InlinedVector<Named, 16> named_;
};

// Returns where in the block a search for the first record with a key of at least `key` may begin:
// at a record behind which it lies, or at the first one.
// Requires: `guide` is that of the block, all of whose records are intact, or it is empty; `base`
// is the segment's key base.
size_t StartByGuide(std::string_view guide, std::string_view block, std::string_view base,
                    std::string_view key);

}  // namespace varve
