// Shared work is a short list of items that its owner and helper threads take until it is empty:
// the owner takes from the front, helpers from the back. A helper that comes late finds few items
// or none; no thread waits for it.
//
// The list is lock-free: both positions and the number of the list are one word, so that a helper
// that slept through the end of a list takes nothing from the next one by mistake.
//
// Thread-safety: only the owner's thread calls Add(), Open() and TakeFirst(); any thread may call
// TakeLast(). The thread that takes an item sees what the owner did before Open().
// Invariants: each item is taken exactly once.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace varve {

template <typename T>
class SharedWork {
 public:
  static constexpr size_t kCapacity = 256;

  SharedWork() = default;
  SharedWork(const SharedWork&) = delete;
  SharedWork& operator=(const SharedWork&) = delete;

  // Adds an item to the next list. Returns false if it has kCapacity items.
  // Requires: TakeFirst() has returned null for the list before.
  [[nodiscard]] bool Add(T* item) {
    if (size_ == kCapacity) return false;
    items_[size_++].store(item, std::memory_order_relaxed);
    return true;
  }
  // Returns how many items were added since the last Open().
  size_t added() const { return size_; }
  void Open() {
    const uint64_t number = (state_.load(std::memory_order_relaxed) >> 32) + 1;
    state_.store(number << 32 | size_, std::memory_order_release);
    size_ = 0;
  }

  // Both return null if no item is left.
  T* TakeFirst() {
    return Take([](uint64_t state) { return Front(state); }, uint64_t{1} << 16);
  }
  T* TakeLast() {
    // Adding it takes one away.
    return Take([](uint64_t state) { return End(state) - 1; }, ~uint64_t{0});
  }

 private:
  // number: 32 bits | front: 16 | end: 16
  static size_t Front(uint64_t state) { return state >> 16 & 0xffff; }
  static size_t End(uint64_t state) { return state & 0xffff; }

  template <typename Position>
  T* Take(Position position, uint64_t change) {
    uint64_t state = state_.load(std::memory_order_acquire);
    while (Front(state) < End(state)) {
      T* const item = items_[position(state)].load(std::memory_order_relaxed);
      if (state_.compare_exchange_weak(state, state + change, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
        return item;
      }
    }
    return nullptr;
  }

  std::array<std::atomic<T*>, kCapacity> items_{};
  size_t size_ = 0;
  alignas(64) std::atomic<uint64_t> state_{0};
};

}  // namespace varve
