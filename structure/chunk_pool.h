// Memory of arenas: chunks of arenas that ended, for those to come, and always one that a thread
// has made ahead. Fresh memory costs the system its zeroing, and a virtual machine's host more than
// that: 2 µs per KiB were measured, thirty times what writing into it takes. So where chunks are
// large, whoever writes is to find them made.
//
// Thread-safe. Keeps nothing but the one ahead until it is told how much.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/aligned_bytes.h"

namespace varve {

class ChunkPool {
 public:
  // From this size on one is made ahead.
  static constexpr size_t kWorthMaking = size_t{1} << 20;

  ChunkPool();
  // Waits for the thread, which may be making a chunk.
  ~ChunkPool();
  ChunkPool(const ChunkPool&) = delete;
  ChunkPool& operator=(const ChunkPool&) = delete;

  // Bytes that may be kept from now on; what is beyond them is given back to the system.
  void KeepUpTo(size_t bytes);
  bool keeps() const {
    absl::MutexLock lock(&mutex_);
    return most_ > 0;
  }
  size_t kept() const {
    absl::MutexLock lock(&mutex_);
    return kept_ + ahead_.capacity();
  }

  // Somebody took as much elsewhere: so much less is kept.
  void MakeRoom(size_t bytes);

  // `size` bytes, uninitialized. Throws std::bad_alloc.
  AlignedBytes Take(size_t size);
  void Give(AlignedBytes chunk) noexcept;

 private:
  static constexpr size_t kMostChunks = 64;

  AlignedBytes TakeLast() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the thread make a chunk; without a thread nothing comes of it.
  void WantAhead(size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeAhead();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_ || wanted_ != 0; }

  mutable absl::Mutex mutex_;
  std::vector<AlignedBytes> spare_ ABSL_GUARDED_BY(mutex_);
  size_t kept_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
  AlignedBytes ahead_ ABSL_GUARDED_BY(mutex_);
  size_t wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of the one to make
  bool making_ ABSL_GUARDED_BY(mutex_) = false;
  bool drops_ ABSL_GUARDED_BY(mutex_) = false;  // what is being made
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread maker_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
