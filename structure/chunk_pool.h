// Memory of arenas that ended, for those to come. Fresh memory costs the system its zeroing, and a virtual machine's host more
// than that: 2 µs per KiB were measured, thirty times what writing into it takes.
//
// Thread-safe. Keeps nothing until it is told how much.
#pragma once

#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/aligned_bytes.h"

namespace varve {

class ChunkPool {
 public:
  ChunkPool() { spare_.reserve(kMostChunks); }
  ~ChunkPool() { KeepUpTo(0); }

  // Bytes that may be kept from now on; what is beyond them is given back to the system.
  void KeepUpTo(size_t bytes) {
    absl::MutexLock lock(&mutex_);
    most_.store(bytes, std::memory_order_relaxed);
    while (kept_ > bytes) TakeLast();
  }
  bool keeps() const { return most_.load(std::memory_order_relaxed) > 0; }
  size_t kept() const {
    absl::MutexLock lock(&mutex_);
    return kept_;
  }

  // Somebody took as much elsewhere: so much less is kept.
  void MakeRoom(size_t bytes) {
    absl::MutexLock lock(&mutex_);
    const size_t left = kept_ - std::min(bytes, kept_);
    while (kept_ > left) TakeLast();
  }

  // `size` bytes, uninitialized. Throws std::bad_alloc.
  AlignedBytes Take(size_t size) {
    {
      absl::MutexLock lock(&mutex_);
      if (!spare_.empty() && spare_.back().size() == size) return TakeLast();
    }
    return AlignedBytes(size);
  }

  void Give(AlignedBytes chunk) noexcept {
    absl::MutexLock lock(&mutex_);
    if (spare_.size() == kMostChunks || kept_ + chunk.capacity() > most_.load(std::memory_order_relaxed)) return;
    kept_ += chunk.capacity();
    ASAN_POISON_MEMORY_REGION(chunk.data(), chunk.capacity());  // who still reads it is wrong
    spare_.push_back(std::move(chunk));
  }

 private:
  static constexpr size_t kMostChunks = 64;

  AlignedBytes TakeLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    AlignedBytes chunk = std::move(spare_.back());
    spare_.pop_back();
    kept_ -= chunk.capacity();
    ASAN_UNPOISON_MEMORY_REGION(chunk.data(), chunk.capacity());
    return chunk;
  }

  mutable absl::Mutex mutex_;
  std::vector<AlignedBytes> spare_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> most_{0};
};

}  // namespace varve
