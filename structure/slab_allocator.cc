#include "structure/slab_allocator.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <new>
#include <utility>

#include "util/base/memory_guard.h"
#include "util/os/aligned_bytes.h"
#include "util/os/thread_setup.h"

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

void SlabAllocator::Unmap::operator()(char* region) const {
  ASAN_UNPOISON_MEMORY_REGION(region, kSlabsOfARegion * kSlabSize);
  munmap(region, kSlabsOfARegion * kSlabSize);
}

SlabAllocator::~SlabAllocator() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    work_.Signal();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

SlabAllocator& SlabAllocator::OfProcess() {
  static SlabAllocator* const allocator = new SlabAllocator;
  return *allocator;
}

// Addresses that begin where a slab may.
SlabAllocator::Region SlabAllocator::NewRegion() {
  constexpr size_t kSize = kSlabsOfARegion * kSlabSize;
  void* const mapped = mmap(nullptr, kSize + kSlabSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  const size_t before = (kSlabSize - reinterpret_cast<uintptr_t>(mapped) % kSlabSize) % kSlabSize;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + kSize, kSlabSize - before);
  (void)madvise(begin + before, kSize, MADV_HUGEPAGE);  // a hint
  return Region(begin + before);
}

void SlabAllocator::Add(Region region) {
  absl::MutexLock lock(&mutex_);
  ReserveMore(&regions_, 1);
  for (auto* list : {&kept_, &free_}) list->reserve((regions_.size() + 1) * kSlabsOfARegion);
  for (size_t i = 0; i < kSlabsOfARegion; ++i) free_.push_back(region.get() + i * kSlabSize);
  regions_.push_back(std::move(region));
}

char* SlabAllocator::TakeFreeSlab() {
  absl::MutexLock lock(&mutex_);
  std::vector<char*>& list = kept_.empty() ? free_ : kept_;
  if (list.empty()) return nullptr;
  char* const slab = list.back();
  list.pop_back();
  held_.fetch_add(kSlabSize, std::memory_order_relaxed);
  taken_ = true;
  if (kept_.empty()) WantAhead();
  return slab;
}

bool SlabAllocator::StartThread() {
  const auto start = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    thread_ = std::thread([this] { Run(); });
  };
  return thread_.joinable() || TryWithMemory(start);
}

void SlabAllocator::WantAhead() {
  if (wanted_ || free_.empty() || !HasBudgetFor(1) || !StartThread()) return;
  wanted_ = true;
  work_.Signal();
}

void SlabAllocator::Run() {
  NameThread("varve-slabs");
  absl::MutexLock lock(&mutex_);
  while (!ending_) {
    bool rested = false;
    if (!wanted_ && kept_.empty()) {
      work_.Wait(&mutex_);
    } else if (!wanted_) {
      rested = work_.WaitWithTimeout(&mutex_, rest_) && !std::exchange(taken_, false);
    }
    if (wanted_) MakeAhead();
    mutex_.Unlock();
    GiveBack(/*all=*/rested);
    mutex_.Lock();
  }
}

void SlabAllocator::MakeAhead() {
  if (!free_.empty()) {
    char* const slab = free_.back();
    free_.pop_back();
    mutex_.Unlock();
    ASAN_UNPOISON_MEMORY_REGION(slab, kSlabSize);
    TakeMemory(slab, kSlabSize);
    mutex_.Lock();
    kept_.push_back(slab);
  }
  wanted_ = false;
}

SlabAllocator::Slab* SlabAllocator::NewSlab(size_t index) {
  char* memory = TakeFreeSlab();
  while (memory == nullptr) {
    Add(NewRegion());
    memory = TakeFreeSlab();  // unless others were faster
  }
  static_assert(sizeof(Slab) <= kHeaderSize);
  ASAN_UNPOISON_MEMORY_REGION(memory, kHeaderSize);
  ASAN_POISON_MEMORY_REGION(memory + kHeaderSize, kSlabSize - kHeaderSize);
  return new (memory) Slab{.fresh = kHeaderSize, .index = static_cast<uint16_t>(index)};
}

void SlabAllocator::AddToBudget(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  budget_ += bytes;
}

void SlabAllocator::TakeFromBudget(size_t bytes) {
  {
    absl::MutexLock lock(&mutex_);
    budget_ -= bytes;
  }
  GiveBack(/*all=*/false);
}

void* SlabAllocator::AllocateOutside(size_t size) {
  void* const piece = ::operator new(size);
  outside_.fetch_add(size, std::memory_order_relaxed);
  GiveBack(/*all=*/false);
  return piece;
}

void SlabAllocator::FreeOutside(void* piece, size_t size) noexcept {
  ::operator delete(piece);
  outside_.fetch_sub(size, std::memory_order_relaxed);
}

void SlabAllocator::GiveBack(bool all) {
  for (;;) {
    char* slab = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      if (kept_.empty() || (!all && HasBudgetFor(0))) return;
      slab = kept_.back();
      kept_.pop_back();
    }
    Drop(slab);
  }
}

void SlabAllocator::Drop(char* slab) {
  DropMemory(slab, kSlabSize);
  absl::MutexLock lock(&mutex_);
  free_.push_back(slab);
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
    held_.fetch_sub(kSlabSize, std::memory_order_relaxed);
    if (HasBudgetFor(1) && StartThread()) {
      if (kept_.empty()) work_.Signal();
      return kept_.push_back(reinterpret_cast<char*>(slab));
    }
  }
  Drop(reinterpret_cast<char*>(slab));
}

}  // namespace varve
