// The chunk pool keeps the chunks of retired arenas for the arenas to come. Fresh memory costs the
// system its zeroing, and a virtual machine's host more than that: 2 µs per KiB were measured,
// thirty times what writing into it takes.
//
// The pool keeps nothing until a caller says how much it may keep (KeepUpTo), and gives memory back
// to the system only when a caller says so: the store's flush thread does after a pause in writing.
//
// Thread-safety: all functions may be called by any thread; one mutex guards everything.
//
// Invariants: kept() is the sum of the capacities of the kept chunks and at most what KeepUpTo
// allowed.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/aligned_bytes.h"

namespace varve {

class ChunkPool {
 public:
  ChunkPool();
  ~ChunkPool() { KeepUpTo(0); }
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // Lets the pool keep up to `bytes` from now on; what it has beyond them goes back to the system.
  void KeepUpTo(size_t bytes);
  // Returns whether the pool may keep anything.
  bool keeps() const {
    absl::MutexLock lock(&mutex_);
    return most_ > 0;
  }
  size_t kept() const {
    absl::MutexLock lock(&mutex_);
    return kept_;
  }

  // Gives up to `bytes` of kept memory back to the system, because the caller is about to take as
  // much from it for a chunk of another size.
  void MakeRoom(size_t bytes);

  // Returns `size` uninitialized bytes, a kept chunk if there is one of this size. Throws
  // std::bad_alloc.
  AlignedBytes Take(size_t size);
  // Keeps the chunk if there is room for it.
  // Requires: `chunk` is not empty, and nothing reads its bytes any more.
  void Give(AlignedBytes chunk) noexcept;

 private:
  static constexpr size_t kMostChunks = 64;

  AlignedBytes TakeLastLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::vector<AlignedBytes> spare_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
