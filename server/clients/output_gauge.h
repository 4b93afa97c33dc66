// Holds what waits for a client against its limits. The soft limit counts from the first look that
// finds it exceeded, so somebody has to look now and then. Not thread-safe.
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
