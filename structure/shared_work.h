// A short list of work that its owner and helpers take from until nothing is left: the owner from
// the front, helpers from the back, so that they meet. A helper that comes late finds less, or
// nothing, and nobody waits for it.
//
// Add(), Open() and TakeFirst() belong to the owner's thread, TakeLast() to any. Each item is taken
// exactly once. What the owner did before Open() is seen by who takes an item. Lock-free: positions
// and the number of the list are one word, so that a helper that slept through the end of a list
// takes nothing from the next one by mistake.
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

  // Between the end of one list (TakeFirst() has returned null) and Open(): false when kCapacity
  // items are in.
  [[nodiscard]] bool Add(T* item) {
    if (size_ == kCapacity) return false;
    items_[size_++].store(item, std::memory_order_relaxed);
    return true;
  }
  // How many were added since the last Open().
  size_t added() const { return size_; }
  void Open() {
    const uint64_t number = (state_.load(std::memory_order_relaxed) >> 32) + 1;
    state_.store(number << 32 | size_, std::memory_order_release);
    size_ = 0;
  }

  // Null: nothing is left.
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
