// The fences are the sparse keys of a segment (the field's index block). For each block of data
// they say where it starts, and hold a key that separates it from what comes before. They are the
// same bytes on disk and in memory.
//
//   [ starts:    8 bytes a fence: bits 0-62 offset of the block's first record
//                                 | bit 63: the key before it is the same key       ]
//   [ key ends:  4 bytes a fence: where its key ends among the keys                 ]
//   [ keys, back to back                                                            ]
//   [ checksums: 4 bytes for each 4096 bytes of the above                           ]
//
// The key of fence k is the shortest one greater than all keys before the block and not greater
// than its first one; the first fence's is empty. If versions of one key lie on both sides of a
// block's start, fence k has that key in full and bit 63 set. Only blocks in which a record begins
// have a fence.
//
// Thread-safety: the builder belongs to one thread; the view is immutable.
// Invariants: starts ascend, each in a block of its own; key ends do not descend.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "util/base/coding.h"

namespace varve {

inline constexpr uint64_t kFenceContinued = uint64_t{1} << 63;

class SegmentFencesBuilder {
 public:
  explicit SegmentFencesBuilder(uint32_t block_size);

  // Adds a record: its key, where it starts, and the key before it (meaningless for the first one).
  // Requires: offsets ascend.
  void Add(std::string_view key, uint64_t offset, std::string_view previous_key) {
    if (const uint64_t block = offset >> block_shift_; block != block_)
      AddFence(key, offset, previous_key, block);
  }
  uint32_t count() const { return static_cast<uint32_t>(starts_.size()); }
  // Returns the bytes of the encoding.
  // Requires: key_bytes() is below 4 GiB.
  uint64_t size() const;
  uint64_t key_bytes() const { return keys_.size(); }
  // Writes the encoding, which has size() bytes.
  void Write(uint64_t segment_number, char* destination) const;

 private:
  void AddFence(std::string_view key, uint64_t offset, std::string_view previous_key,
                uint64_t block);
  uint64_t body_size() const { return starts_.size() * 12 + keys_.size(); }

  const int block_shift_;
  uint64_t block_ = ~uint64_t{0};
  std::vector<uint64_t> starts_;
  std::vector<uint32_t> key_ends_;
  std::string keys_;
};

// A block span is a stretch of data that a reader reads and caches as one.
struct BlockSpan {
  uint64_t begin = 0;
  uint64_t end = 0;  // exclusive; 0: no block
};

// Returns about how far `key` lies on the way from `low` to `high`, from 0 to 1, as if keys were
// spread evenly over the bytes behind what both ends share.
double ShareBetween(std::string_view low, std::string_view key, std::string_view high);

class SegmentFences {
 public:
  SegmentFences() = default;
  // Requires: `bytes` are the whole encoding, verified, and outlive the fences.
  SegmentFences(const char* bytes, uint32_t count, uint64_t data_size, uint32_t block_size);

  size_t count() const { return count_; }
  // Returns the block in which the first record at or after (key, newest) lies, or the one before
  // it.
  size_t Find(std::string_view key) const;
  // Returns the block that holds the record at `offset`.
  size_t BlockOf(uint64_t offset) const;
  BlockSpan Span(size_t block) const {
    return {Start(block), block + 1 < count_ ? Start(block + 1) : data_size_};
  }
  // Returns about which part of the data, from 0 to 1, lies before `key`; exact but for what lies
  // in its block. `largest`: a key at or behind the last one.
  double ShareBefore(std::string_view key, std::string_view largest) const;
  // Returns the key that separates the block from what comes before.
  std::string_view Key(size_t block) const {
    const char* ends = bytes_ + count_ * 8;
    const uint32_t begin = block == 0 ? 0 : DecodeFixed32(ends + (block - 1) * 4);
    return {ends + count_ * 4 + begin, DecodeFixed32(ends + block * 4) - begin};
  }
  // Returns whether the block is worth caching as one. Readers read a block with a large last
  // record in parts instead.
  bool IsCacheable(BlockSpan span) const {
    return span.end - span.begin <= uint64_t{2} << block_shift_;
  }

  // Returns where the encoding of `count` fences is damaged. Returns nothing if it is good: the
  // checksums are right, the starts ascend within the data, each in a block of its own, and the
  // keys lie behind each other.
  static std::optional<uint64_t> FindDamage(std::string_view bytes, uint32_t count,
                                            uint64_t data_size, uint32_t block_size,
                                            uint64_t segment_number);

 private:
  uint64_t Start(size_t block) const {
    return DecodeFixed64(bytes_ + block * 8) & ~kFenceContinued;
  }
  // Returns the eight bytes of a fence's key behind those that all but the first fence share, as
  // LeadingWord() does.
  uint64_t WordOf(size_t block) const {
    const std::string_view key = Key(block);
    const size_t skipped = std::min(shared_, key.size());
    const size_t size = key.size() - skipped;
    const char* const at = key.data() + skipped;
    if (size >= 8 || at + 8 > keys_end_) return LeadingWord({at, size});
    // Shorter keys are the rule. What follows them is another key.
    return DecodeBigEndian64(at) & ~(~uint64_t{0} >> 8 * size);
  }
  bool IsContinued(size_t block) const {
    return (DecodeFixed64(bytes_ + block * 8) & kFenceContinued) != 0;
  }

  const char* bytes_ = nullptr;
  size_t count_ = 0;
  uint64_t data_size_ = 0;
  int block_shift_ = 0;
  size_t shared_ = 0;  // first bytes that the keys of all fences but the first have in common
  const char* keys_end_ = nullptr;
};

}  // namespace varve
