// The clock by which a store lets keys expire, in milliseconds since the epoch.
//
// The rule: what somebody has seen expired stays so, whatever happens to the machine's clock, also across a restart. The machine's
// clock may be set back; then a key that was missing would be there again. So whoever finds that a key has expired leaves a mark in
// the log, "the clock has been at this instant", and the finding is let out like a write: when the mark is as durable as the store's mode
// promises. The newest mark is in the manifest, too, when the log's files go. A store's clock never shows less than its newest mark: while
// the machine's clock is behind it, it goes on from there at the pace of the monotonic clock, so that what is to expire in
// ten seconds does. Where nothing expires no mark is ever written.
//
// A clock that was far ahead when a mark was left keeps the store's clock ahead: keys with an absolute expiry go early. That is the
// price of the rule, and docs/durability.md says how to see it.
//
// Thread-safe. A reading takes tens of nanoseconds.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/clock.h"

namespace varve {

class StoreClock {
 public:
  // `clock` outlives it.
  explicit StoreClock(const Clock& clock) : clock_(clock) {}

  uint64_t NowMillis() const {
    const uint64_t wall = clock_.WallMillis();
    return wall >= mark_.load(std::memory_order_acquire) ? wall : BehindMark();
  }

  // From now on the clock shows `instant_ms` or more.
  void Mark(uint64_t instant_ms);
  uint64_t mark() const { return mark_.load(std::memory_order_acquire); }

 private:
  uint64_t BehindMark() const;

  const Clock& clock_;
  std::atomic<uint64_t> mark_{0};
  mutable absl::Mutex mutex_;
  uint64_t marked_at_nanos_ ABSL_GUARDED_BY(mutex_) = 0;  // monotonic, when the mark was set
};

}  // namespace varve
