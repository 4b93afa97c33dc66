// The offset table cache holds the indexes (offset table and fences) of segments under a byte
// budget, and evicts by CLOCK.
//
// A segment owns a ResidentIndex, where its index hangs while it is resident. A lookup pins it for
// some tens of nanoseconds, never across I/O and never while calling the cache: one counter of
// eight, spread over threads, goes up and down, and no lock is taken. Eviction unhooks the index
// and waits until the counters have been seen at zero; a later lookup finds nothing there. A caller
// that needs the index longer takes a reference (Share), which keeps its memory, beyond the budget,
// until it is let go.
//
// Thread-safety: all functions may be called by any thread.
// Invariants: the charges of all hooked and waiting indexes together are at most capacity(); an
// index that a pin sees is not freed before the pin goes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/segment/segment_index.h"

namespace varve {

class ResidentIndex {
 private:
  static constexpr size_t kPinShards = 8;
  struct alignas(64) PinShard {
    std::atomic<uint64_t> count{0};
  };

 public:
  class Pin {
   public:
    explicit Pin(const ResidentIndex& resident) : shard_(resident.pins_[ThreadShard()]) {
      shard_.count.fetch_add(1, std::memory_order_seq_cst);
      index_ = resident.current_.load(std::memory_order_seq_cst);
      if (index_ != nullptr && !resident.recently_used_.load(std::memory_order_relaxed)) {
        resident.recently_used_.store(true, std::memory_order_relaxed);
      }
    }
    ~Pin() { shard_.count.fetch_sub(1, std::memory_order_release); }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;

    explicit operator bool() const { return index_ != nullptr; }
    const SegmentIndex* operator->() const { return index_; }

   private:
    PinShard& shard_;
    const SegmentIndex* index_;
  };

  ResidentIndex() = default;
  ResidentIndex(const ResidentIndex&) = delete;
  ResidentIndex& operator=(const ResidentIndex&) = delete;

  std::shared_ptr<const SegmentIndex> Share() const {
    const Pin pin(*this);
    return pin ? pin->shared_from_this() : nullptr;
  }
  // Prefetches the bucket of `hash`. The table may be gone by now, so its bytes are not read.
  void Prefetch(uint64_t hash) const {
    const char* table = table_hint_.load(std::memory_order_relaxed);
    if (table != nullptr)
      OffsetTableView::Prefetch(table, page_count_hint_.load(std::memory_order_relaxed), hash);
  }

 private:
  friend class OffsetTableCache;

  static size_t ThreadShard();
  void WaitUntilUnpinned() const;

  std::atomic<const SegmentIndex*> current_{nullptr};
  std::atomic<const char*> table_hint_{nullptr};
  std::atomic<uint32_t> page_count_hint_{0};
  mutable std::atomic<bool> recently_used_{false};
  std::shared_ptr<const SegmentIndex> owner_;  // guarded by the cache's mutex
  mutable std::array<PinShard, kPinShards> pins_;
};

class OffsetTableCache {
 public:
  explicit OffsetTableCache(size_t capacity) : capacity_(capacity) {}
  OffsetTableCache(const OffsetTableCache&) = delete;
  OffsetTableCache& operator=(const OffsetTableCache&) = delete;

  // Hooks `index` into `resident`, evicting others; does nothing if one hangs there already.
  // Returns false if it is larger than the budget.
  bool Insert(ResidentIndex* resident, std::shared_ptr<const SegmentIndex> index);
  // Unhooks the index of `resident`; its owner calls this before `resident` goes. Needs no memory.
  void Erase(ResidentIndex* resident);

  // Hand an index from the builder of a segment to its reader, so that a finished segment is opened
  // without reading its index back. The oldest index that nobody collects gives way first.
  void Leave(std::shared_ptr<const SegmentIndex> index);
  std::shared_ptr<const SegmentIndex> Collect(uint64_t segment_number);

  bool Fits(size_t charge) const { return charge <= capacity_; }
  size_t capacity() const { return capacity_; }
  size_t usage() const;

 private:
  using Victims = std::vector<std::shared_ptr<const SegmentIndex>>;  // freed after the lock
  void MakeRoom(size_t charge, Victims* victims) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestLeft(Victims* victims) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<const SegmentIndex> Unhook(ResidentIndex* resident)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::vector<ResidentIndex*> ring_ ABSL_GUARDED_BY(mutex_);
  size_t hand_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<const SegmentIndex>> left_ ABSL_GUARDED_BY(mutex_);
  size_t usage_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
