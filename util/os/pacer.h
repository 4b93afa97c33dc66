// A pacer spreads work that burdens the disk over time: the work is done in steps, and a pause
// follows each step unless somebody waits for the work. Without the pauses, a sync of another file
// would queue behind the whole of it.
//
// Thread-safety: a Pacer does not change.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "util/os/steady_condition.h"

namespace varve {

class Pacer {
 public:
  // The rate is at most `step_bytes` in each `pause`.
  constexpr Pacer(uint64_t step_bytes, absl::Duration pause)
      : step_bytes_(step_bytes), pause_(pause) {}

  uint64_t step_bytes() const { return step_bytes_; }
  // Returns when the next step is due, if one has just been done.
  SteadyTime NextStep(bool is_awaited = false) const {
    return is_awaited ? SteadyNow() : SteadyNow() + pause_;
  }

 private:
  const uint64_t step_bytes_;
  const absl::Duration pause_;
};

}  // namespace varve
