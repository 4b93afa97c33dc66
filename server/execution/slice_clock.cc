#include "server/execution/slice_clock.h"

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr size_t kKeysPerLook = 16;  // at the time

}  // namespace

void SliceClock::CountTo(SliceClock* outer) {
  VARVE_ASSERT(is_inner_ && outer != this);
  outer_ = outer;
}

bool SliceClock::SliceSpent(size_t keys) {
  if (is_inner_) return outer_ != nullptr && outer_->SliceSpent(keys);
  if (slice_spent_) return true;
  if (keys_to_look_ > keys) {
    keys_to_look_ -= keys;
    return false;
  }
  keys_to_look_ = kKeysPerLook;
  const auto end = End();
  return slice_spent_ = std::chrono::steady_clock::now() >= end;
}

void SliceClock::MakeWork(std::chrono::nanoseconds time) {
  if (!is_inner_) {
    End() -= time;
  } else if (outer_ != nullptr) {
    outer_->MakeWork(time);
  }
}

std::chrono::steady_clock::time_point& SliceClock::End() {
  if (end_ == std::chrono::steady_clock::time_point())
    end_ = std::chrono::steady_clock::now() + kSlice;
  return end_;
}

}  // namespace varve
