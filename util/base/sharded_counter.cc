#include "util/base/sharded_counter.h"

#include <bit>

namespace varve::sharded_counter_internal {

thread_local constinit size_t thread_slot = kUnclaimed;

namespace {

// Bit i is set while slot i has an owner. Claiming acquires what the last owner released, so that
// the new owner's plain additions continue from its last value.
std::atomic<uint32_t> owned_slots{0};

size_t ClaimOwnSlot() {
  uint32_t owned = owned_slots.load(std::memory_order_relaxed);
  for (;;) {
    const size_t free_slot = static_cast<size_t>(std::countr_one(owned));
    if (free_slot >= kSharedSlot) return kSharedSlot;
    if (owned_slots.compare_exchange_weak(owned, owned | (uint32_t{1} << free_slot),
                                          std::memory_order_acquire, std::memory_order_relaxed)) {
      return free_slot;
    }
  }
}

// Gives the slot back when the thread ends; what the thread still counts after that goes to the
// shared slot.
struct SlotOwner {
  SlotOwner() : slot(ClaimOwnSlot()) {}
  ~SlotOwner() {
    thread_slot = kSharedSlot;
    if (slot != kSharedSlot)
      owned_slots.fetch_and(~(uint32_t{1} << slot), std::memory_order_release);
  }
  const size_t slot;
};

}  // namespace

void ClaimSlot() {
  static thread_local const SlotOwner owner;
  thread_slot = owner.slot;
}

}  // namespace varve::sharded_counter_internal
