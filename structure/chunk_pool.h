// The chunk pool keeps the chunks of retired arenas for the arenas to come. Fresh memory costs the
// system its zeroing, and a virtual machine's host more than that: 2 µs per KiB were measured,
// thirty times what writing into it takes. The pool therefore has the next large chunk made ahead
// on the store's file thread, so that a writer finds its memory mapped (docs/decisions/0012).
//
// The pool keeps nothing else until a caller says how much it may keep (KeepUpTo), and gives memory
// back to the system only when a caller says so: the store's flush thread does after a pause in
// writing.
//
// Thread-safety: all functions may be called by any thread; one mutex guards everything. The pool
// calls the file thread without it.
//
// Invariants: kept() is the sum of the capacities of the kept chunks, at most what KeepUpTo
// allowed, and of the chunk that was made ahead.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/aligned_bytes.h"
#include "util/os/file_thread.h"

namespace varve {

class ChunkPool final : private FileThread::Job {
 public:
  // Chunks of at least so many bytes are made ahead.
  static constexpr size_t kWorthMaking = size_t{1} << 20;

  // Chunks are made ahead on `maker`; null: none are.
  // Requires: `maker` outlives the pool, or StopMaking() is called before it ends.
  explicit ChunkPool(FileThread* maker = nullptr);
  ~ChunkPool() override;
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // From now on no chunk is made ahead. Requires: no Take() runs meanwhile.
  void StopMaking() ABSL_LOCKS_EXCLUDED(mutex_);

  // Lets the pool keep up to `bytes` from now on; what it has beyond them goes back to the system,
  // and with 0 bytes the chunk that was made ahead, too.
  void KeepUpTo(size_t bytes);
  // Returns whether the pool may keep anything.
  bool keeps() const {
    absl::MutexLock lock(&mutex_);
    return most_ > 0;
  }
  size_t kept() const {
    absl::MutexLock lock(&mutex_);
    return kept_ + ahead_.capacity();
  }

  // Gives up to `bytes` of kept memory back to the system, because the caller is about to take as
  // much from it for a chunk of another size.
  void MakeRoom(size_t bytes);

  // Returns `size` uninitialized bytes, a kept chunk if there is one of this size. Throws
  // std::bad_alloc.
  AlignedBytes Take(size_t size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps the chunk if there is room for it.
  // Requires: `chunk` is not empty, and nothing reads its bytes any more.
  void Give(AlignedBytes chunk) noexcept;

 private:
  static constexpr size_t kMostChunks = 64;

  // Makes the chunk that is wanted.
  SteadyTime Step() noexcept override ABSL_LOCKS_EXCLUDED(mutex_);
  AlignedBytes TakeLastLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a chunk of this size that the pool has, or an empty one.
  AlignedBytes TakeMadeLocked(size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  FileThread* maker_ ABSL_GUARDED_BY(mutex_);
  std::vector<AlignedBytes> spare_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
  AlignedBytes ahead_ ABSL_GUARDED_BY(mutex_);
  size_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of the chunk to make; 0: none
};

}  // namespace varve
