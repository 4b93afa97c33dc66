#include "structure/slab_allocator.h"

#include <sanitizer/asan_interface.h>

#include <new>
#include <utility>

namespace varve {
namespace {

constexpr size_t kSlabSize = size_t{2} << 20;
constexpr size_t kHeaderSize = 64;

struct FreeSlot {
  FreeSlot* next;
};

}  // namespace

struct SlabAllocator::Slab {
  AlignedBytes memory;  // this slab's own
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

SlabAllocator& SlabAllocator::OfProcess() {
  static SlabAllocator* const allocator = new SlabAllocator;
  return *allocator;
}

SlabAllocator::Slab* SlabAllocator::NewSlab(size_t index) {
  AlignedBytes memory;
  {
    absl::MutexLock lock(&mutex_);
    memory = std::exchange(spare_, {});
    if (memory.size() == 0) held_ += kSlabSize;
  }
  if (memory.size() == 0) {
    try {
      memory = AlignedBytes(kSlabSize);
    } catch (const std::bad_alloc&) {
      absl::MutexLock lock(&mutex_);
      held_ -= kSlabSize;
      throw;
    }
  }
  static_assert(sizeof(Slab) <= kHeaderSize);
  ASAN_UNPOISON_MEMORY_REGION(memory.data(), kHeaderSize);
  ASAN_POISON_MEMORY_REGION(memory.data() + kHeaderSize, kSlabSize - kHeaderSize);
  auto* const slab = new (memory.data()) Slab{.fresh = kHeaderSize, .index = static_cast<uint16_t>(index)};
  slab->memory = std::move(memory);
  return slab;
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
        return slot;
      }
    }
    fresh = NewSlab(index);
  }
}

void SlabAllocator::Free(void* piece) noexcept {
  AlignedBytes emptied;  // given back after the lock
  absl::MutexLock lock(&mutex_);
  Slab* const slab = Slab::Of(piece);
  const bool had_room = slab->HasRoom();
  auto* const slot = static_cast<FreeSlot*>(piece);
  slot->next = slab->free;
  slab->free = slot;
  ASAN_POISON_MEMORY_REGION(piece, SlotSizeOf(slab->index));
  if (--slab->used > 0) {
    if (!had_room) Link(slab);
    return;
  }
  if (had_room) Unlink(slab);
  emptied = std::move(slab->memory);
  if (spare_.size() == 0) {
    spare_ = std::move(emptied);
  } else {
    ASAN_UNPOISON_MEMORY_REGION(emptied.data(), kSlabSize);
    held_ -= kSlabSize;
  }
}

}  // namespace varve
