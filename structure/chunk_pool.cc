#include "structure/chunk_pool.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <utility>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"

namespace varve {

ChunkPool::ChunkPool(FileThread* maker) : maker_(maker) {
  spare_.reserve(kMostChunks);
  if (maker != nullptr) maker->Add(this);
}

ChunkPool::~ChunkPool() {
  StopMaking();
  KeepUpTo(0);
}

void ChunkPool::StopMaking() {
  FileThread* maker;
  {
    absl::MutexLock lock(&mutex_);
    maker = std::exchange(maker_, nullptr);
    wanted_ = 0;
  }
  if (maker != nullptr) maker->Remove(this);
}

void ChunkPool::KeepUpTo(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  most_ = bytes;
  while (kept_ > bytes) TakeLastLocked();
  VARVE_ASSERT(kept_ > 0 || spare_.empty());
  if (bytes > 0) return;
  ahead_ = {};
  wanted_ = 0;
}

void ChunkPool::MakeRoom(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  const size_t left = kept_ - std::min(bytes, kept_);
  while (kept_ > left) TakeLastLocked();
}

AlignedBytes ChunkPool::Take(size_t size) {
  AlignedBytes chunk;
  FileThread* maker = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    chunk = TakeMadeLocked(size);
    if (size >= kWorthMaking && spare_.empty() && ahead_.size() == 0 && wanted_ == 0) {
      maker = maker_;
      if (maker != nullptr) wanted_ = size;
    }
  }
  if (maker != nullptr) maker->Wake(this);
  return chunk.size() > 0 ? std::move(chunk) : AlignedBytes(size);
}

AlignedBytes ChunkPool::TakeMadeLocked(size_t size) {
  mutex_.AssertHeld();
  if (!spare_.empty() && spare_.back().size() == size) return TakeLastLocked();
  return ahead_.size() == size ? std::exchange(ahead_, {}) : AlignedBytes();
}

SteadyTime ChunkPool::Step() noexcept {
  size_t size;
  {
    absl::MutexLock lock(&mutex_);
    size = wanted_;
  }
  if (size == 0) return kEndOfTime;
  AlignedBytes chunk;
  TryWithMemory([&] {
    chunk = AlignedBytes(size);
    TakeMemory(chunk.data(), chunk.capacity());
  });
  absl::MutexLock lock(&mutex_);
  // What is not wanted any more goes back to the system.
  if (wanted_ == size) ahead_ = std::move(chunk);
  wanted_ = 0;
  return kEndOfTime;
}

void ChunkPool::Give(AlignedBytes chunk) noexcept {
  VARVE_ASSERT(chunk.data() != nullptr);
  absl::MutexLock lock(&mutex_);
  const size_t kept = kept_ + ahead_.capacity() + chunk.capacity();
  if (spare_.size() == kMostChunks || kept > most_) return;
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
