// The offset table cache holds the indexes (offset table and fences) of segments under a byte
// budget, and evicts by CLOCK.
//
// A segment owns a ResidentIndex, which holds the segment's index while that is in memory. A lookup
// pins the index for some tens of nanoseconds, never across I/O and never over a call of the cache.
// A pin takes no lock: it raises one of eight counters, which are spread over the threads, and
// lowers it again. Eviction takes the index out of the ResidentIndex and waits until it has seen
// every counter at zero; a later lookup finds no index. A caller that needs the index longer takes
// a reference (Share), which keeps the index in memory, beyond the budget, until the caller drops
// it.
//
// Thread-safety: all functions may be called by any thread.
// Invariants: the indexes in all ResidentIndexes and those that wait for Collect() are together
// charged with at most capacity(), together with what segments hold beside their indexes, as far as
// that alone fits; the cache frees no index that a pin sees.
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

  // Returns a reference to the index; null if it is not in memory.
  std::shared_ptr<const SegmentIndex> Share() const {
    const Pin pin(*this);
    return pin ? pin->shared_from_this() : nullptr;
  }
  // Prefetches the bucket of `hash`. The cache may free the table meanwhile, so this reads none of
  // its bytes.
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

  // Puts `index` into `resident` and evicts others for it; does nothing if `resident` has an index
  // already. Returns false if `index` is larger than the budget.
  bool Insert(ResidentIndex* resident, std::shared_ptr<const SegmentIndex> index);
  // Takes the index out of `resident`, whose owner calls this before it destroys `resident`. The
  // call needs no memory.
  void Erase(ResidentIndex* resident);

  // Leave and Collect hand an index from the builder of a segment to the reader, which so opens the
  // finished segment without reading its index back. An index that waits for Collect gives way
  // before any index in use, the oldest first.
  void Leave(std::shared_ptr<const SegmentIndex> index);
  std::shared_ptr<const SegmentIndex> Collect(uint64_t segment_number);

  // Charges the budget with what a segment keeps beside its index, and evicts indexes for it.
  // Release() gives it back.
  void Hold(size_t charge);
  void Release(size_t charge);

  bool Fits(size_t charge) const {
    return charge + held_.load(std::memory_order_relaxed) <= capacity_;
  }
  size_t capacity() const { return capacity_; }
  size_t usage() const;

 private:
  using Victims = std::vector<std::shared_ptr<const SegmentIndex>>;  // freed after the lock
  void MakeRoom(size_t charge, Victims* victims) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldestLeft(Victims* victims) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the index out of `resident` and waits until no pin sees it.
  std::shared_ptr<const SegmentIndex> Unhook(ResidentIndex* resident)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  mutable absl::Mutex mutex_;
  std::vector<ResidentIndex*> ring_ ABSL_GUARDED_BY(mutex_);
  size_t hand_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::shared_ptr<const SegmentIndex>> left_ ABSL_GUARDED_BY(mutex_);
  size_t usage_ ABSL_GUARDED_BY(mutex_) = 0;
  std::atomic<size_t> held_{0};  // part of usage_; changes under mutex_
};

}  // namespace varve
