// The clock of a slice: a command that reads many keys, or works for long, asks it whether other
// clients should get their turn on this thread.
//
// Thread-safety: one thread at a time uses a clock.
#pragma once

#include <chrono>
#include <cstddef>

namespace varve {

class SliceClock {
 public:
  // How long a command that reads many keys may keep its thread from others. A change of turns
  // costs about 1 % of it.
  static constexpr std::chrono::microseconds kSlice{500};

  // `is_inner`: the time is that of another clock, which CountTo() names; without one it is never
  // spent.
  explicit SliceClock(bool is_inner) : is_inner_(is_inner) {}

  // Requires: the clock is an inner one. `outer` may be null: nobody else gets a turn before the
  // command is done.
  void CountTo(SliceClock* outer);

  // Returns whether others should get their turn, and stays true from then on. To be asked once for
  // each key that a command walks over, or after work worth `keys` of them: it looks at the time
  // only now and then.
  bool SliceSpent(size_t keys = 1);
  // Counts work that this slice makes for others of this thread as if it had been done in it.
  void MakeWork(std::chrono::nanoseconds time);
  bool slice_spent() const { return slice_spent_; }

 private:
  // Returns when the slice ends.
  std::chrono::steady_clock::time_point& End();

  const bool is_inner_;
  SliceClock* outer_ = nullptr;
  bool slice_spent_ = false;
  size_t keys_to_look_ = 0;                      // at the time
  std::chrono::steady_clock::time_point end_{};  // set by the first look
};

}  // namespace varve
