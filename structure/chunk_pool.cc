#include "structure/chunk_pool.h"

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <utility>

#include "util/base/memory_guard.h"
#include "util/os/thread_setup.h"

namespace varve {

ChunkPool::ChunkPool() {
  absl::MutexLock lock(&mutex_);
  spare_.reserve(kMostChunks);
}

ChunkPool::~ChunkPool() {
  KeepUpTo(0);
  std::thread maker;
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    maker = std::move(maker_);
  }
  if (maker.joinable()) maker.join();
}

void ChunkPool::KeepUpTo(size_t bytes) {
  AlignedBytes ahead;  // given back after the lock
  absl::MutexLock lock(&mutex_);
  most_ = bytes;
  while (kept_ > bytes) TakeLast();
  if (bytes > 0) return;
  ahead = std::exchange(ahead_, {});
  wanted_ = 0;
  drops_ = making_;
}

void ChunkPool::MakeRoom(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  const size_t left = kept_ - std::min(bytes, kept_);
  while (kept_ > left) TakeLast();
}

AlignedBytes ChunkPool::Take(size_t size) {
  {
    AlignedBytes chunk;
    absl::MutexLock lock(&mutex_);
    if (!spare_.empty() && spare_.back().size() == size) {
      chunk = TakeLast();
    } else if (ahead_.size() == size) {
      chunk = std::exchange(ahead_, {});
    }
    if (size >= kWorthMaking && spare_.empty() && ahead_.size() == 0) WantAhead(size);
    if (chunk.size() != 0) return chunk;
  }
  return AlignedBytes(size);
}

void ChunkPool::Give(AlignedBytes chunk) noexcept {
  absl::MutexLock lock(&mutex_);
  if (spare_.size() == kMostChunks || kept_ + chunk.capacity() > most_) return;
  kept_ += chunk.capacity();
  ASAN_POISON_MEMORY_REGION(chunk.data(), chunk.capacity());  // who still reads it is wrong
  spare_.push_back(std::move(chunk));
}

AlignedBytes ChunkPool::TakeLast() {
  AlignedBytes chunk = std::move(spare_.back());
  spare_.pop_back();
  kept_ -= chunk.capacity();
  ASAN_UNPOISON_MEMORY_REGION(chunk.data(), chunk.capacity());
  return chunk;
}

void ChunkPool::WantAhead(size_t size) {
  drops_ = false;
  if (making_) return;
  const auto start = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    maker_ = std::thread([this] { MakeAhead(); });
  };
  if (!maker_.joinable() && !TryWithMemory(start)) return;
  wanted_ = size;
}

void ChunkPool::MakeAhead() {
  NameThread("varve-chunks");
  absl::MutexLock lock(&mutex_);
  for (;;) {
    mutex_.Await(absl::Condition(this, &ChunkPool::HasWork));
    if (ending_) return;
    const size_t size = std::exchange(wanted_, 0);
    making_ = true;
    mutex_.Unlock();
    AlignedBytes chunk;
    TryWithMemory([&] {
      chunk = AlignedBytes(size);
      TakeMemory(chunk.data(), chunk.capacity());
    });
    mutex_.Lock();
    making_ = false;
    if (!std::exchange(drops_, false)) ahead_ = std::move(chunk);
  }
}

}  // namespace varve
