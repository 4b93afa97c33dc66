// Memory for many pieces of some KiB that are touched at random, in huge pages of the system: where
// each piece lies on small pages of its own, looking up the page takes as long as what one came for
// (after Bonwick, "The Slab Allocator").
//
//   region = 64 MiB of addresses, one mapping that stays for good: 32 slabs
//   slab   = 2 MiB, aligned: [ header: 64 bytes ][ slots of one size ]
//   sizes  = above 1 KiB, up to 16 KiB, in steps of an eighth of the power of two below: at most an
//          eighth of a slot stays unused
//
// Slots that came free are given out again, last first, before new ones are. A slab that keeps a
// few pieces keeps all of its memory, and its free slots serve no other size: unused() says how
// much that is, for users who have to stay within a budget. A slab whose slots are all free keeps
// its memory for the next one as long as all memory stays within what users said they may fill, and
// not for more than some seconds without a new slab, since fresh memory is dear
// (structure/chunk_pool.h); else it goes back to the system. For the same reason a thread brings
// memory into one free slab ahead. Thread-safe: one mutex, held while some lines of memory are
// touched; while it is held the system is asked for nothing but the thread.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "util/os/steady_condition.h"

namespace varve {

class SlabAllocator {
 public:
  static constexpr size_t kSmallest = size_t{1} << 10;  // smaller than any piece
  static constexpr size_t kLargest = size_t{16} << 10;
  static constexpr size_t kSlabSize = size_t{2} << 20;

  // `rest`: after once to twice so long without a new slab, what free slabs keep is given back.
  explicit SlabAllocator(absl::Duration rest = absl::Seconds(2)) : rest_(rest) {}
  // All pieces must have been given back. Waits for the thread.
  ~SlabAllocator();
  SlabAllocator(const SlabAllocator&) = delete;
  SlabAllocator& operator=(const SlabAllocator&) = delete;

  // The process's own, which never ends: for pieces that may outlive whoever took them.
  static SlabAllocator& OfProcess();

  static bool Fits(size_t size) { return size > kSmallest && size <= kLargest; }
  // Bytes of the slot in which a piece of `size` lies.
  static size_t SlotSizeFor(size_t size) { return SlotSizeOf(ClassOf(size)); }
  // Uninitialized bytes, aligned to 64; Fits(size). Throws std::bad_alloc.
  void* Allocate(size_t size);
  void Free(void* piece) noexcept;

  // Adds to what users together may fill; at first it is nothing.
  void AddToBudget(size_t bytes);
  void TakeFromBudget(size_t bytes);
  // For pieces of any size that users fill their budget with, too: from operator new, aligned as
  // that does.
  void* AllocateOutside(size_t size);
  void FreeOutside(void* piece, size_t size) noexcept;

  // Bytes of all slabs that are in use, of those of them in which no piece lies, and of the free
  // ones that keep their memory.
  size_t held() const { return held_.load(std::memory_order_relaxed); }
  size_t unused() const {
    const size_t used = used_.load(std::memory_order_relaxed), all = held();
    return all - (used < all ? used : all);
  }
  size_t kept() const {
    absl::MutexLock lock(&mutex_);
    return kept_.size() * kSlabSize;
  }

 private:
  struct Slab;
  struct Unmap {
    void operator()(char* region) const;
  };
  using Region = std::unique_ptr<char, Unmap>;
  static constexpr size_t kSlabsOfARegion = 32;
  static constexpr int kSmallestBits = std::bit_width(kSmallest) - 1;
  static constexpr size_t kClasses = 32;  // eight for each doubling

  // The eighth of a doubling into which the size falls, rounded up.
  static size_t ClassOf(size_t size) {
    const int doubling = std::bit_width(size - 1) - 1;  // size is in (1 << doubling, 2 << doubling]
    const size_t eighth = (size - 1 - (size_t{1} << doubling)) >> (doubling - 3);
    return static_cast<size_t>(doubling - kSmallestBits) * 8 + eighth;
  }
  static size_t SlotSizeOf(size_t index) {
    return (9 + index % 8) << (index / 8 + kSmallestBits - 3);
  }

  static Region NewRegion();
  void Add(Region region);
  // Null: all are in use.
  char* TakeFreeSlab();
  Slab* NewSlab(size_t index);
  bool StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Has the thread bring memory into a free slab; without a thread nothing comes of it.
  void WantAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeAhead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  // Whether so many more slabs with memory stay within the budget.
  bool HasBudgetFor(size_t more_slabs) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return held() + (kept_.size() + more_slabs) * kSlabSize +
               outside_.load(std::memory_order_relaxed) <=
           budget_;
  }
  // Gives what free slabs keep back to the system: what is beyond the budget, or all.
  void GiveBack(bool all);
  // Of a slab that nobody else knows of: it is free, without memory.
  void Drop(char* slab);
  void Link(Slab* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(Slab* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration rest_;
  mutable absl::Mutex mutex_;
  std::array<Slab*, kClasses> with_room_ ABSL_GUARDED_BY(mutex_) = {};  // by class, doubly linked
  std::vector<Region> regions_ ABSL_GUARDED_BY(mutex_);
  // Free slabs, with memory and without. Both lists have room for all slabs there are.
  std::vector<char*> kept_ ABSL_GUARDED_BY(mutex_);
  std::vector<char*> free_ ABSL_GUARDED_BY(mutex_);
  size_t budget_ ABSL_GUARDED_BY(mutex_) = 0;
  SteadyCondition work_;                         // for the thread
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;  // until the slab is there
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;   // a slab, since the thread looked last
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
  std::atomic<size_t> held_{0};
  std::atomic<size_t> used_{0};
  std::atomic<size_t> outside_{0};
};

}  // namespace varve
