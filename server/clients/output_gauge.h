// The output gauge compares the bytes that wait for a client with its limits. The time of the soft
// limit runs from the first call that finds it exceeded, so the caller has to call now and then.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "type/server_options.h"

namespace varve {

class OutputGauge {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Returns whether `bytes` exceed the hard limit, or have exceeded the soft limit for too long.
  bool Over(size_t bytes, const OutputLimits& limits, Time now) {
    if (limits.hard > 0 && bytes > limits.hard) return true;
    if (limits.soft == 0 || bytes <= limits.soft) {
      soft_since_.reset();
      return false;
    }
    if (!soft_since_) soft_since_ = now;
    return now - *soft_since_ > limits.soft_time;
  }

 private:
  std::optional<Time> soft_since_;
};

}  // namespace varve
