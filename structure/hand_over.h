// A hand-over lets one thread wait for one word from another thread. The waiting thread looks for
// some microseconds, and then sleeps.
//
// Thread-safety: one thread calls Await(), one other thread calls Tell(), each once. Await() may
// return, and the hand-over may be destroyed, before Tell() does.
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

  // Waits until the other thread calls Tell(), and returns its word.
  uint32_t Await() {
    const int spins = SpinsBeforeSleep();
    for (int i = 0; i < spins; ++i) {
      const uint32_t word = word_.load(std::memory_order_acquire);
      if (word != kWaits) return word;
      SpinPause();
    }
    uint32_t word = kWaits;
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
