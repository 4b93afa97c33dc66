// A log buffer collects records that wait to be written, laid out as the blocks that they will be.
//
//   | header 40 | record | record | .. pad to 8 | header 40 | record | ..
//
// The writer fills in the headers when it writes a block, because a header depends on the block's
// place in the file. Append() fills a buffer and a write empties it; the writer swaps buffers, so
// that no record is copied twice. A buffer keeps its memory unless it grew far beyond a group's
// size.
//
// A record need not be copied by the thread that appends it, which holds locks: Append() can leave
// that to another thread, and AwaitCopies() waits until all such copies are made.
//
// Invariants: blocks begin at multiples of 8 and follow each other in the order of their sequences.
// Thread-safety: none; a buffer belongs to the thread that holds the lock under which it is kept,
// or that took it out of there. LogCopy::Make() may be called on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "db/format/log_format.h"
#include "util/base/assert.h"
#include "util/base/spin.h"
#include "varve/types.h"

namespace varve {

// The part of an append that is left to the thread whose record it is.
class LogCopy {
 public:
  LogCopy() = default;

  bool is_due() const { return to_ != nullptr; }
  // Copies the record. Requires: is_due(), and it is the record that was appended. Whoever writes
  // the buffer spins until this is called: nobody waits for the log between the append and this.
  void Make(std::string_view record) {
    std::memcpy(to_, record.data(), record.size());
    to_ = nullptr;
    under_way_->fetch_sub(1, std::memory_order_release);
  }

 private:
  friend class LogBuffer;
  char* to_ = nullptr;
  std::atomic<uint32_t>* under_way_ = nullptr;
};

class LogBuffer {
 public:
  struct Block {
    size_t begin = 0;  // the header's, within the buffer; a multiple of 8
    size_t end = 0;    // behind the last record
    SequenceNumber first = 0;
    SequenceNumber last = 0;
  };

  // Appends a record that holds the operations first..last, and `mark` in front of it (empty:
  // none); with `new_block` they begin a new block. Returns the offset of the record in its block's
  // payload. Throws std::bad_alloc, and then nothing was appended. With `later` the record is not
  // copied: the thread that calls later->Make() copies it.
  // Requires: `first` is behind all operations in the buffer.
  size_t Append(std::string_view record, SequenceNumber first, SequenceNumber last, bool new_block,
                std::string_view mark = {}, LogCopy* later = nullptr) {
    VARVE_ASSERT(first <= last);
    VARVE_ASSERT(blocks_.empty() || first > blocks_.back().last);
    if (blocks_.empty() || new_block) {
      const size_t begin = LogBlockAlign(size_);
      Grow(begin + kLogBlockHeaderSize + mark.size() + record.size());
      blocks_.push_back({begin, begin + kLogBlockHeaderSize, first, last});
      std::memset(data_.get() + size_, 0, begin - size_);
      size_ = begin + kLogBlockHeaderSize;
    } else {
      Grow(size_ + mark.size() + record.size());
    }
    if (!mark.empty()) [[unlikely]] {
      std::memcpy(data_.get() + size_, mark.data(), mark.size());
      size_ += mark.size();
    }
    const size_t offset = size_ - blocks_.back().begin - kLogBlockHeaderSize;
    if (later == nullptr) {
      std::memcpy(data_.get() + size_, record.data(), record.size());
    } else {
      later->to_ = data_.get() + size_;
      later->under_way_ = copies_.get();
      copies_->fetch_add(1, std::memory_order_relaxed);
    }
    size_ += record.size();
    blocks_.back().end = size_;
    blocks_.back().last = last;
    return offset;
  }

  // Waits until all records that were appended have been copied.
  void AwaitCopies() const {
    for (SpinWait wait; copies_->load(std::memory_order_acquire) != 0;) wait.Pause();
  }

  bool empty() const { return blocks_.empty(); }
  size_t size() const { return size_; }
  // Returns the bytes of the last block, to which Append() adds.
  size_t last_block_size() const { return blocks_.empty() ? 0 : size_ - blocks_.back().begin; }
  const std::vector<Block>& blocks() const { return blocks_; }
  // Returns the first sequence of the last block. Requires: !empty().
  SequenceNumber last_block_first() const { return blocks_.back().first; }
  // Returns the bytes of the records alone in the blocks [begin, end).
  size_t records_size(size_t begin, size_t end) const {
    VARVE_ASSERT(begin <= end && end <= blocks_.size());
    size_t sum = 0;
    for (size_t i = begin; i < end; ++i)
      sum += blocks_[i].end - blocks_[i].begin - kLogBlockHeaderSize;
    return sum;
  }
  char* data() { return data_.get(); }

  // Zeros the `count` bytes behind the last block, for which there is always room.
  // Requires: count < kLogPageSize.
  void PadEnd(size_t count) {
    VARVE_ASSERT(count < kLogPageSize && size_ + count <= capacity_);
    std::memset(data_.get() + size_, 0, count);
  }

  // Empties the buffer, and gives its memory back if it is more than `keep` bytes.
  void Clear(size_t keep) {
    AwaitCopies();
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
    AwaitCopies();
    if (size_ > 0) std::memcpy(grown.get(), data_.get(), size_);
    data_ = std::move(grown);
    capacity_ = capacity;
  }

  std::unique_ptr<char[], FreeAligned> data_;  // begins on a page, as direct writes want it
  size_t capacity_ = 0;
  size_t size_ = 0;
  std::vector<Block> blocks_;
  // How many records are still to be copied; it stays where it is when buffers are swapped.
  std::unique_ptr<std::atomic<uint32_t>> copies_ = std::make_unique<std::atomic<uint32_t>>(0);
};

}  // namespace varve
