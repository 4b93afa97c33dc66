// The retained space says how much of what was committed is retained though no feed holds it back:
// as the options say and, where the store has followers, at least so many bytes for them.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "varve/options.h"

namespace varve {

class RetainedSpace {
 public:
  explicit RetainedSpace(const ChangeRetention& options) : options_(options) {}

  const ChangeRetention& options() const { return options_; }
  // 0: nothing is retained for followers.
  uint64_t follower_bytes() const { return follower_bytes_.load(std::memory_order_relaxed); }
  void SetFollowerBytes(uint64_t bytes) { follower_bytes_.store(bytes, std::memory_order_relaxed); }
  // Returns both together.
  ChangeRetention limits() const {
    ChangeRetention limits = options_;
    // No limit by size is none by time alone either.
    if (limits.bytes != 0 || limits.time_ms == 0)
      limits.bytes = std::max(limits.bytes, follower_bytes());
    return limits;
  }

 private:
  const ChangeRetention options_;
  std::atomic<uint64_t> follower_bytes_{0};
};

}  // namespace varve
