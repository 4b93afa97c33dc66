// The output gauge holds the bytes that wait for a client against its limits. The soft limit counts
// from the first call that finds it exceeded, so the caller has to ask now and then.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "type/server_options.h"

namespace varve {

class OutputGauge {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The client has fallen too far behind, or a little too far for too long.
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
