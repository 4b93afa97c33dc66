#include "structure/slab_allocator.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <new>

#include "util/memory_guard.h"

namespace varve {
namespace {

constexpr size_t kHeaderSize = 64;

struct FreeSlot {
  FreeSlot* next;
};

}  // namespace

struct SlabAllocator::Slab {
  Slab* previous = nullptr;
  Slab* next = nullptr;
  FreeSlot* free = nullptr;  // that were in use once
  uint32_t fresh;            // where those begin that never were
  uint16_t used = 0;
  uint16_t index;  // of its class

  bool HasRoom() const { return free != nullptr || fresh + SlotSizeOf(index) <= kSlabSize; }
  static Slab* Of(void* piece) {
    return reinterpret_cast<Slab*>(reinterpret_cast<uintptr_t>(piece) & ~uintptr_t{kSlabSize - 1});
  }
};

SlabAllocator::~SlabAllocator() {
  absl::MutexLock lock(&mutex_);
  for (char* region : regions_) {
    ASAN_UNPOISON_MEMORY_REGION(region, kSlabsOfARegion * kSlabSize);
    munmap(region, kSlabsOfARegion * kSlabSize);
  }
}

SlabAllocator& SlabAllocator::OfProcess() {
  static SlabAllocator* const allocator = new SlabAllocator;
  return *allocator;
}

// Addresses that begin where a slab may.
char* SlabAllocator::NewRegion() {
  constexpr size_t kSize = kSlabsOfARegion * kSlabSize;
  void* const mapped =
      mmap(nullptr, kSize + kSlabSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  const size_t before = (kSlabSize - reinterpret_cast<uintptr_t>(mapped) % kSlabSize) % kSlabSize;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + kSize, kSlabSize - before);
  (void)madvise(begin + before, kSize, MADV_HUGEPAGE);  // a hint
  return begin + before;
}

SlabAllocator::Slab* SlabAllocator::NewSlab(size_t index) {
  char* memory = nullptr;
  while (memory == nullptr) {
    {
      absl::MutexLock lock(&mutex_);
      if (!free_.empty()) {
        memory = free_.back();
        free_.pop_back();
        break;
      }
      ReserveMore(&regions_, 1);
      free_.reserve((regions_.size() + 1) * kSlabsOfARegion);
    }
    char* const region = NewRegion();
    absl::MutexLock lock(&mutex_);
    ReserveMore(&regions_, 1);  // somebody else may have been here
    free_.reserve((regions_.size() + 1) * kSlabsOfARegion);
    regions_.push_back(region);
    for (size_t i = 0; i < kSlabsOfARegion; ++i) free_.push_back(region + i * kSlabSize);
  }
  held_.fetch_add(kSlabSize, std::memory_order_relaxed);
  static_assert(sizeof(Slab) <= kHeaderSize);
  ASAN_UNPOISON_MEMORY_REGION(memory, kHeaderSize);
  ASAN_POISON_MEMORY_REGION(memory + kHeaderSize, kSlabSize - kHeaderSize);
  return new (memory) Slab{.fresh = kHeaderSize, .index = static_cast<uint16_t>(index)};
}

void SlabAllocator::Link(Slab* slab) {
  Slab*& first = with_room_[slab->index];
  slab->previous = nullptr;
  slab->next = first;
  if (first != nullptr) first->previous = slab;
  first = slab;
}

void SlabAllocator::Unlink(Slab* slab) {
  (slab->previous != nullptr ? slab->previous->next : with_room_[slab->index]) = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
}

void* SlabAllocator::Allocate(size_t size) {
  const size_t index = ClassOf(size);
  const size_t slot_size = SlotSizeOf(index);
  Slab* fresh = nullptr;
  for (;;) {
    {
      absl::MutexLock lock(&mutex_);
      if (fresh != nullptr) Link(fresh);
      if (Slab* const slab = with_room_[index]; slab != nullptr) {
        char* slot = reinterpret_cast<char*>(slab->free);
        if (slot != nullptr) {
          ASAN_UNPOISON_MEMORY_REGION(slot, size);
          slab->free = slab->free->next;
        } else {
          slot = reinterpret_cast<char*>(slab) + slab->fresh;
          ASAN_UNPOISON_MEMORY_REGION(slot, size);
          slab->fresh += static_cast<uint32_t>(slot_size);
        }
        ++slab->used;
        if (!slab->HasRoom()) Unlink(slab);
        used_.fetch_add(slot_size, std::memory_order_relaxed);
        return slot;
      }
    }
    fresh = NewSlab(index);
  }
}

void SlabAllocator::Free(void* piece) noexcept {
  Slab* const slab = Slab::Of(piece);
  {
    absl::MutexLock lock(&mutex_);
    const bool had_room = slab->HasRoom();
    auto* const slot = static_cast<FreeSlot*>(piece);
    slot->next = slab->free;
    slab->free = slot;
    ASAN_POISON_MEMORY_REGION(piece, SlotSizeOf(slab->index));
    used_.fetch_sub(SlotSizeOf(slab->index), std::memory_order_relaxed);
    if (--slab->used > 0) {
      if (!had_room) Link(slab);
      return;
    }
    if (had_room) Unlink(slab);
  }
  // Nobody else knows of it.
  (void)madvise(slab, kSlabSize, MADV_DONTNEED);
  held_.fetch_sub(kSlabSize, std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  free_.push_back(reinterpret_cast<char*>(slab));
}

}  // namespace varve
