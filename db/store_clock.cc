#include "db/store_clock.h"

namespace varve {
namespace {

constexpr uint64_t kNanosPerMilli = 1'000'000;

}  // namespace

void StoreClock::Mark(uint64_t instant_ms) {
  absl::MutexLock lock(&mutex_);
  if (instant_ms <= mark_.load(std::memory_order_relaxed)) return;
  marked_at_nanos_ = clock_.MonotonicNanos();
  mark_.store(instant_ms, std::memory_order_release);
}

uint64_t StoreClock::BehindMark() const {
  absl::MutexLock lock(&mutex_);
  return mark_.load(std::memory_order_relaxed) + (clock_.MonotonicNanos() - marked_at_nanos_) / kNanosPerMilli;
}

}  // namespace varve
