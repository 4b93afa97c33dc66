// A rate meter computes the events per second of a counter between two calls that are at least a
// second apart. A call that comes sooner returns the last rate.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <chrono>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace varve {

class RateMeter {
 public:
  using Clock = std::chrono::steady_clock;

  double Rate(uint64_t count, Clock::time_point now = Clock::now()) {
    absl::MutexLock lock(&mutex_);
    const std::chrono::duration<double> seconds = now - last_look_;
    if (seconds >= std::chrono::seconds(1)) {
      rate_ =
          static_cast<double>(count < last_count_ ? count : count - last_count_) / seconds.count();
      last_look_ = now;
      last_count_ = count;
    }
    return rate_;
  }

 private:
  absl::Mutex mutex_;
  Clock::time_point last_look_ ABSL_GUARDED_BY(mutex_) = Clock::now();
  uint64_t last_count_ ABSL_GUARDED_BY(mutex_) = 0;
  double rate_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
