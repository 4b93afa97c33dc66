// Memory for many pieces of some KiB that are touched at random, in huge pages of the system: where each piece lies on small pages of its
// own, looking up the page takes as long as what one came for (after Bonwick, "The Slab Allocator").
//
//   region = 64 MiB of addresses, one mapping that stays for good: 32 slabs
//   slab   = 2 MiB, aligned: [ header: 64 bytes ][ slots of one size ]
//   sizes  = above 1 KiB, up to 16 KiB, in steps of an eighth of the power of two below: at most an eighth of a slot stays unused
//
// Slots that came free are given out again, last first, before new ones are. The memory of a slab whose slots are all free goes back to the
// system. A slab that keeps a few pieces keeps all of its memory, and its free slots serve no other size: unused() says how much that
// is, for users who have to stay within a budget.
// Thread-safe: one mutex, held while some lines of memory are touched, and never while the system is asked for memory.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class SlabAllocator {
 public:
  static constexpr size_t kSmallest = size_t{1} << 10;  // smaller than any piece
  static constexpr size_t kLargest = size_t{16} << 10;
  static constexpr size_t kSlabSize = size_t{2} << 20;

  SlabAllocator() = default;
  // All pieces must have been given back.
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

  // Bytes of all slabs that are in use, and those of them in which no piece lies.
  size_t held() const { return held_.load(std::memory_order_relaxed); }
  size_t unused() const {
    const size_t used = used_.load(std::memory_order_relaxed), all = held();
    return all - (used < all ? used : all);
  }

 private:
  struct Slab;
  static constexpr size_t kSlabsOfARegion = 32;
  static constexpr int kSmallestBits = std::bit_width(kSmallest) - 1;
  static constexpr size_t kClasses = 32;  // eight for each doubling

  // The eighth of a doubling into which the size falls, rounded up.
  static size_t ClassOf(size_t size) {
    const int doubling = std::bit_width(size - 1) - 1;  // size is in (1 << doubling, 2 << doubling]
    const size_t eighth = (size - 1 - (size_t{1} << doubling)) >> (doubling - 3);
    return static_cast<size_t>(doubling - kSmallestBits) * 8 + eighth;
  }
  static size_t SlotSizeOf(size_t index) { return (9 + index % 8) << (index / 8 + kSmallestBits - 3); }

  Slab* NewSlab(size_t index);
  char* NewRegion();
  void Link(Slab* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(Slab* slab) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::array<Slab*, kClasses> with_room_ ABSL_GUARDED_BY(mutex_) = {};  // by class, doubly linked
  std::vector<char*> regions_ ABSL_GUARDED_BY(mutex_);
  std::vector<char*> free_ ABSL_GUARDED_BY(mutex_);  // slabs without memory; has room for all there are
  std::atomic<size_t> held_{0};
  std::atomic<size_t> used_{0};
};

}  // namespace varve
