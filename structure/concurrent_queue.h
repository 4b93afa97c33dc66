// The concurrent queue is a bounded queue for many producers and many consumers: a ring of cells,
// each with a ticket that says which push or pop may use it next (after D. Vyukov's bounded MPMC
// queue). Push and pop are a compare-and-swap on the fast path; only a consumer that finds the
// queue empty sleeps.
//
// Thread-safety: all functions may be called by any thread.
// Invariants:
// (1) Elements leave in the order in which their pushes claimed cells.
// (2) At most capacity() elements are inside.
// (3) After Close() nothing enters, and what is inside is still handed out.
// (4) No consumer sleeps for good while an element is ready. An element that is ready early, behind
//     one whose producer has lost its processor, may have woken a consumer in vain. So a consumer
//     that was asleep wakes the next one if it leaves an element behind.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "util/base/assert.h"

namespace varve {

template <typename T>
class ConcurrentQueue {
 public:
  // `capacity` is rounded up to a power of two, at least 2.
  explicit ConcurrentQueue(size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? size_t{2} : capacity) - 1), cells_(new Cell[mask_ + 1]) {
    for (size_t i = 0; i <= mask_; ++i) cells_[i].ticket.store(i, std::memory_order_relaxed);
  }
  ConcurrentQueue(const ConcurrentQueue&) = delete;
  ConcurrentQueue& operator=(const ConcurrentQueue&) = delete;

  size_t capacity() const { return mask_ + 1; }

  // Adds the element. Returns false, and leaves `element` untouched, if the queue is full or
  // closed. Never blocks.
  [[nodiscard]] bool TryPush(T&& element) {
    producers_.fetch_add(1);
    const bool pushed = !closed_.load() && PushCell(std::move(element));
    producers_.fetch_sub(1);
    if (pushed && sleepers_.load() > 0) Wake(false);
    return pushed;
  }

  // Takes the oldest element; returns nothing if the queue is empty. Never blocks.
  std::optional<T> TryPop() {
    size_t position = pop_position_.load(std::memory_order_relaxed);
    while (true) {
      Cell& cell = cells_[position & mask_];
      const auto ahead =
          static_cast<intptr_t>(cell.ticket.load()) - static_cast<intptr_t>(position + 1);
      if (ahead == 0) {
        if (pop_position_.compare_exchange_weak(position, position + 1)) {
          VARVE_ASSERT(cell.ticket.load() == position + 1);
          std::optional<T> element(std::move(cell.element));
          cell.element = T();
          cell.ticket.store(position + mask_ + 1);
          return element;
        }
      } else if (ahead < 0) {
        return std::nullopt;
      } else {
        position = pop_position_.load(std::memory_order_relaxed);
      }
    }
  }

  // Waits for an element and takes it. Returns nothing only if the queue is closed and empty.
  std::optional<T> Pop() {
    for (bool has_slept = false;; has_slept = true) {
      if (std::optional<T> element = TryPop()) {
        if (has_slept) WakeForNext();
        return element;
      }
      // The order matters: say "sleeping", then look again, then sleep on the epoch read before the
      // look.
      const uint32_t epoch = epoch_.load();
      sleepers_.fetch_add(1);
      std::optional<T> element = TryPop();
      // A closed queue is empty for good only when no producer is still inside its push.
      const bool ended = !element && closed_.load() && producers_.load() == 0;
      if (!element && !ended) {
        if (closed_.load()) {
          sleepers_.fetch_sub(1);
          continue;
        }
        epoch_.wait(epoch);
      }
      sleepers_.fetch_sub(1);
      if (element) {
        WakeForNext();
        return element;
      }
      if (ended) return TryPop();
    }
  }

  // Lets no more elements in and wakes every sleeper.
  void Close() {
    closed_.store(true);
    Wake(true);
  }

 private:
  struct alignas(64) Cell {
    std::atomic<size_t> ticket;
    T element{};
  };

  bool PushCell(T&& element) {
    size_t position = push_position_.load(std::memory_order_relaxed);
    while (true) {
      Cell& cell = cells_[position & mask_];
      const auto ahead =
          static_cast<intptr_t>(cell.ticket.load()) - static_cast<intptr_t>(position);
      if (ahead == 0) {
        if (push_position_.compare_exchange_weak(position, position + 1)) {
          VARVE_ASSERT(cell.ticket.load() == position);
          cell.element = std::move(element);
          cell.ticket.store(position + 1);
          return true;
        }
      } else if (ahead < 0) {
        return false;
      } else {
        position = push_position_.load(std::memory_order_relaxed);
      }
    }
  }

  // Wakes another consumer if an element is ready that this one leaves to it.
  void WakeForNext() {
    const size_t next = pop_position_.load();
    if (sleepers_.load() > 0 && cells_[next & mask_].ticket.load() == next + 1) Wake(false);
  }

  void Wake(bool everyone) {
    epoch_.fetch_add(1);
    if (everyone) {
      epoch_.notify_all();
    } else {
      epoch_.notify_one();
    }
  }

  const size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<size_t> push_position_{0};
  alignas(64) std::atomic<size_t> pop_position_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> producers_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace varve
