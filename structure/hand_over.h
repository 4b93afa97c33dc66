// A hand-over lets one thread wait for one word from another thread. The waiting thread looks for a
// while (SpinUntil), and then sleeps.
//
// Thread-safety: one thread calls Await(), once at most; other threads call the rest, Tell() once
// at most. Await() may return, and the hand-over may be destroyed, before Tell() does.
#pragma once

#include <atomic>
#include <cstdint>

#include "util/base/assert.h"
#include "util/base/spin.h"

namespace varve {

class HandOver {
 public:
  // The lowest word that Tell() takes; the hand-over itself uses those below.
  static constexpr uint32_t kFirstWord = 2;

  HandOver() = default;
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // Ends the wait with `word`.
  // Requires: `word` is kFirstWord or above.
  void Tell(uint32_t word) {
    VARVE_ASSERT(word >= kFirstWord);
    // A wake-up needs only the address, at which there may be something else by now.
    if (word_.exchange(word, std::memory_order_acq_rel) == kSleeps) word_.notify_one();
  }

  // Returns whether Tell() was not called and the waiting thread does not sleep.
  bool is_looked_for() const { return word_.load(std::memory_order_relaxed) == kWaits; }

  // Waits until the other thread calls Tell(), and returns its word.
  uint32_t Await() {
    uint32_t word = kWaits;
    if (SpinUntil([&] { return (word = word_.load(std::memory_order_acquire)) != kWaits; }))
      return word;
    if (!word_.compare_exchange_strong(word, kSleeps, std::memory_order_acq_rel)) return word;
    do {
      word_.wait(kSleeps, std::memory_order_acquire);
      word = word_.load(std::memory_order_acquire);
    } while (word == kSleeps);
    return word;
  }

 private:
  static constexpr uint32_t kWaits = 0;
  static constexpr uint32_t kSleeps = 1;
  static_assert(kFirstWord > kWaits && kFirstWord > kSleeps);

  std::atomic<uint32_t> word_{kWaits};
};

}  // namespace varve
