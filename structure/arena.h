// Memory that is given out in small pieces and given back all at once.
//
// One thread at a time may allocate (callers serialize); bytes_used() may be read by any thread.
// What was allocated stays in place until the arena goes. Pieces are aligned to 8 bytes. A piece
// larger than a quarter chunk gets an allocation of its own, so that little is wasted at the end of
// chunks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "structure/chunk_pool.h"
#include "util/base/memory_guard.h"
#include "util/os/aligned_bytes.h"

namespace varve {

class Arena {
 public:
  // Chunks come from `pool`, where there is one, and go back to it.
  explicit Arena(size_t chunk_size, std::shared_ptr<ChunkPool> pool = nullptr)
      : chunk_size_(chunk_size), pool_(std::move(pool)) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    if (pool_ == nullptr) return;
    for (AlignedBytes& chunk : chunks_) {
      if (chunk.size() == chunk_size_) pool_->Give(std::move(chunk));
    }
  }

  char* Allocate(size_t bytes) {
    bytes = SizeOf(bytes);
    if (bytes > left_) return AllocateSlow(bytes);
    char* piece = next_;
    next_ += bytes;
    left_ -= bytes;
    return piece;
  }

  // The next pieces, up to `bytes` in all (each with its alignment, see SizeOf), will be there:
  // allocating them can't fail.
  void Reserve(size_t bytes) {
    if (bytes <= left_) return;
    if (bytes <= rest_left_) {
      std::swap(next_, rest_);
      std::swap(left_, rest_left_);
      return;
    }
    const bool own_chunk = bytes > chunk_size_ / 4;
    const AlignedBytes& chunk = NewChunk(own_chunk ? bytes : chunk_size_);
    if (own_chunk && left_ > rest_left_) {  // to go on with later
      rest_ = next_;
      rest_left_ = left_;
    }
    next_ = chunk.data();
    left_ = chunk.capacity();
  }
  static size_t SizeOf(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

  // Bytes taken from the system.
  size_t bytes_used() const { return bytes_used_.load(std::memory_order_relaxed); }

 private:
  char* AllocateSlow(size_t bytes) {
    if (bytes > chunk_size_ / 4) return NewChunk(bytes).data();
    const AlignedBytes& chunk = NewChunk(chunk_size_);
    next_ = chunk.data() + bytes;
    left_ = chunk.capacity() - bytes;
    return chunk.data();
  }

  const AlignedBytes& NewChunk(size_t bytes) {
    ReserveMore(&chunks_, 1);
    const bool is_usual = bytes == chunk_size_;
    if (pool_ != nullptr && !is_usual) pool_->MakeRoom(bytes);
    chunks_.push_back(pool_ != nullptr && is_usual ? pool_->Take(bytes) : AlignedBytes(bytes));
    bytes_used_.store(bytes_used() + chunks_.back().capacity(), std::memory_order_relaxed);
    return chunks_.back();
  }

  const size_t chunk_size_;
  const std::shared_ptr<ChunkPool> pool_;
  char* next_ = nullptr;
  size_t left_ = 0;
  char* rest_ = nullptr;  // of a chunk that Reserve() left for a larger one
  size_t rest_left_ = 0;
  std::vector<AlignedBytes> chunks_;
  std::atomic<size_t> bytes_used_{0};
};

}  // namespace varve
