#include "db/expiry/store_clock.h"

#include <algorithm>

#include "util/base/assert.h"

namespace varve {
namespace {

template <typename Number>
void RaiseTo(Number value, std::atomic<Number>* number) {
  Number present = number->load();
  while (present < value && !number->compare_exchange_weak(present, value)) {
  }
}

}  // namespace

void StoreClock::Mark(uint64_t instant_ms) {
  if (instant_ms <= mark()) return;
  RaiseTo(static_cast<int64_t>(instant_ms) - MonotonicMillis(), &over_monotonic_);
  RaiseTo(instant_ms, &mark_);
  VARVE_ASSERT(mark() >= instant_ms);
  VARVE_ASSERT(NowMillis() >= instant_ms);
}

uint64_t StoreClock::NowFromMark(uint64_t wall) const {
  const uint64_t mark = mark_.load();
  const auto from_mark = static_cast<uint64_t>(MonotonicMillis() + over_monotonic_.load());
  const bool is_ahead = wall < from_mark;
  is_ahead_.store(is_ahead, std::memory_order_relaxed);
  return std::max({wall, mark, from_mark});
}

}  // namespace varve
