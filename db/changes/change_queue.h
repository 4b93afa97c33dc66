// The change queue takes committed batches from the commit pipeline to the change recorder, in
// order. The pipeline pays for a copy of the operations; the change thread is woken only when much
// waits.
//
// Thread-safety: all functions may be called on any thread; Reserve() and Add() by one thread at a
// time (under the commit lock), and Take() by one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "varve/types.h"

namespace varve {

class ChangeQueue {
 public:
  // Writers wait, without a lock, while more than this waits.
  static constexpr size_t kMostBytes = size_t{32} << 20;
  // The change thread is woken when so much waits.
  static constexpr size_t kBytesThatWake = size_t{256} << 10;

  // A batch of the queue: views into it.
  struct Batch {
    SequenceNumber first = kNoSequence;
    uint32_t count = 0;
    bool begins_buffer = false;  // the first one of a write buffer
    std::string_view operations;
  };
  struct Chunk {
    std::string bytes;
    std::unique_ptr<Chunk> next;

    Chunk() = default;
    Chunk(const Chunk&) = delete;
    Chunk& operator=(const Chunk&) = delete;
    ~Chunk();  // without recursion, as a list may be long
  };

  ChangeQueue() = default;
  ChangeQueue(const ChangeQueue&) = delete;
  ChangeQueue& operator=(const ChangeQueue&) = delete;

  // Takes the memory for a batch of so many bytes, so that the next Add() cannot fail. Throws
  // std::bad_alloc.
  void Reserve(size_t operations_size) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether the change thread is to be woken.
  // Requires: Reserve() for as many bytes, and no other Add() since.
  bool Add(const Batch& batch) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns a list of what was added, oldest first; null if there is nothing.
  std::unique_ptr<Chunk> Take() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `visit` with each batch of a list that Take() returned.
  static void ForEach(const Chunk& list, const std::function<void(const Batch&)>& visit);

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  absl::Mutex mutex_;
  std::unique_ptr<Chunk> oldest_ ABSL_GUARDED_BY(mutex_);
  Chunk* newest_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::unique_ptr<Chunk> spare_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> bytes_{0};
};

}  // namespace varve
