// Records that wait to be written, laid out as the blocks that they will be: what Append fills and
// a write empties.
//
//   | header 40 | record | record | .. pad to 8 | header 40 | record | ..
//
// The headers' bytes are left open: a block learns its place, and so its header, when it is
// written. Two buffers take turns, so that nothing is copied twice; a buffer keeps its memory
// unless it grew far beyond a group's size. Not thread-safe: it belongs to whoever holds the lock
// it is kept under, or took it out of there.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "db/format/log_format.h"
#include "varve/types.h"

namespace varve {

class LogBuffer {
 public:
  struct Block {
    size_t begin = 0;  // of the header, within the buffer; a multiple of 8
    size_t end = 0;    // behind the last record
    SequenceNumber first = 0;
    SequenceNumber last = 0;
  };

  // `new_block`: the record must not share a block with the ones before it. Returns where it lies
  // in its block's payload. Throws std::bad_alloc, and then nothing was appended.
  size_t Append(std::string_view record, SequenceNumber first, SequenceNumber last,
                bool new_block) {
    if (blocks_.empty() || new_block) {
      const size_t begin = LogBlockAlign(size_);
      Grow(begin + kLogBlockHeaderSize + record.size());
      blocks_.push_back({begin, begin + kLogBlockHeaderSize, first, last});
      std::memset(data_.get() + size_, 0, begin - size_);
      size_ = begin + kLogBlockHeaderSize;
    } else {
      Grow(size_ + record.size());
    }
    const size_t offset = size_ - blocks_.back().begin - kLogBlockHeaderSize;
    std::memcpy(data_.get() + size_, record.data(), record.size());
    size_ += record.size();
    blocks_.back().end = size_;
    blocks_.back().last = last;
    return offset;
  }

  bool empty() const { return blocks_.empty(); }
  size_t size() const { return size_; }
  // Bytes of the block that Append goes on with.
  size_t last_block_size() const { return blocks_.empty() ? 0 : size_ - blocks_.back().begin; }
  const std::vector<Block>& blocks() const { return blocks_; }
  // The first sequence of the block that Append went to last.
  SequenceNumber last_block_first() const { return blocks_.back().first; }
  // Of the records alone.
  size_t records_size() const {
    size_t sum = 0;
    for (const Block& block : blocks_) sum += block.end - block.begin - kLogBlockHeaderSize;
    return sum;
  }
  char* data() { return data_.get(); }

  // Zeros the `count` < kLogPageSize bytes behind the last block, which there is always room for.
  void PadEnd(size_t count) { std::memset(data_.get() + size_, 0, count); }

  // `keep`: more memory than this is given back.
  void Clear(size_t keep) {
    blocks_.clear();
    size_ = 0;
    if (capacity_ > keep) {
      data_.reset();
      capacity_ = 0;
    }
  }

 private:
  static constexpr std::align_val_t kPage{kLogPageSize};
  struct FreeAligned {
    void operator()(char* data) const { ::operator delete(data, kPage); }
  };

  void Grow(size_t needed) {
    needed += kLogPageSize;  // room for PadEnd
    if (needed <= capacity_) return;
    const size_t capacity = LogPageAlign(needed > 2 * capacity_ ? needed : 2 * capacity_);
    std::unique_ptr<char[], FreeAligned> grown(static_cast<char*>(::operator new(capacity, kPage)));
    if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
    data_ = std::move(grown);
    capacity_ = capacity;
  }

  std::unique_ptr<char[], FreeAligned> data_;  // begins on a page, as direct writes want it
  size_t capacity_ = 0;
  size_t size_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace varve
