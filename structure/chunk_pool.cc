#include "structure/chunk_pool.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <utility>

#include "util/base/assert.h"

namespace varve {

ChunkPool::ChunkPool() {
  absl::MutexLock lock(&mutex_);
  spare_.reserve(kMostChunks);
}

void ChunkPool::KeepUpTo(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  most_ = bytes;
  while (kept_ > bytes) TakeLastLocked();
  VARVE_ASSERT(kept_ > 0 || spare_.empty());
}

void ChunkPool::MakeRoom(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  const size_t left = kept_ - std::min(bytes, kept_);
  while (kept_ > left) TakeLastLocked();
}

AlignedBytes ChunkPool::Take(size_t size) {
  {
    absl::MutexLock lock(&mutex_);
    if (!spare_.empty() && spare_.back().size() == size) return TakeLastLocked();
  }
  return AlignedBytes(size);
}

void ChunkPool::Give(AlignedBytes chunk) noexcept {
  VARVE_ASSERT(chunk.data() != nullptr);
  absl::MutexLock lock(&mutex_);
  if (spare_.size() == kMostChunks || kept_ + chunk.capacity() > most_) return;
  kept_ += chunk.capacity();
  ASAN_POISON_MEMORY_REGION(chunk.data(), chunk.capacity());  // reading it now is an error
  spare_.push_back(std::move(chunk));
}

AlignedBytes ChunkPool::TakeLastLocked() {
  mutex_.AssertHeld();
  VARVE_ASSERT(!spare_.empty() && kept_ >= spare_.back().capacity());
  AlignedBytes chunk = std::move(spare_.back());
  spare_.pop_back();
  kept_ -= chunk.capacity();
  ASAN_UNPOISON_MEMORY_REGION(chunk.data(), chunk.capacity());
  return chunk;
}

}  // namespace varve
