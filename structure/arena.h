// The arena gives out memory in small pieces and gives it back all at once.
//
// Pieces are aligned to 8 bytes and stay in place until the arena goes. A piece larger than a
// quarter chunk gets an allocation of its own, so that little is wasted at the end of chunks.
//
// Thread-safety: one thread at a time may allocate (callers serialize); any thread may call
// bytes_used().
// Invariants: [next_, next_ + left_) and [rest_, rest_ + rest_left_) lie in chunks of the arena and
// hold no piece.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "structure/chunk_pool.h"
#include "util/base/assert.h"
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
    VARVE_ASSERT(next_ != nullptr || bytes == 0);
    char* piece = next_;
    next_ += bytes;
    left_ -= bytes;
    return piece;
  }

  // Makes sure that the next pieces, up to `bytes` in all (each counted as SizeOf), can be
  // allocated without failing. Throws std::bad_alloc.
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
  // Returns what a piece of `bytes` takes.
  static size_t SizeOf(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

  // Returns the bytes taken from the system.
  size_t bytes_used() const { return bytes_used_.load(std::memory_order_relaxed); }

 private:
  char* AllocateSlow(size_t bytes) {
    if (bytes > chunk_size_ / 4) return NewChunk(bytes).data();
    const AlignedBytes& chunk = NewChunk(chunk_size_);
    VARVE_ASSERT(bytes <= chunk.capacity());
    next_ = chunk.data() + bytes;
    left_ = chunk.capacity() - bytes;
    return chunk.data();
  }

  const AlignedBytes& NewChunk(size_t bytes) {
    VARVE_ASSERT(bytes > 0);
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
  char* rest_ = nullptr;  // what is left of a chunk that Reserve() left for a larger one
  size_t rest_left_ = 0;
  std::vector<AlignedBytes> chunks_;
  std::atomic<size_t> bytes_used_{0};
};

}  // namespace varve
