// The waits for a store that is on other machines: how many requests it has been asked and has not
// answered, how many wait until there is room for them, and for how long it has had any.
//
// Thread-safety: all threads may count and read.
// Invariants: what ends has begun.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/base/assert.h"

namespace varve {

class StoreWaits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Figures {
    size_t in_flight = 0;      // requests that the store has not answered
    size_t waiting = 0;        // connections whose requests wait for room
    uint64_t asked = 0;        // requests so far
    uint64_t busy_nanos = 0;   // for which the store has had requests, altogether
    uint64_t crowd_nanos = 0;  // for which connections have waited for room, altogether
  };

  // The store is asked `requests` requests, or has answered so many.
  void Begin(size_t requests, Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    asked_ += requests;
    busy_.Add(requests, now);
  }
  void End(size_t requests, Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    busy_.Remove(requests, now);
  }
  // A connection waits for room, or does not wait any more.
  void BeginCrowd(Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    crowd_.Add(1, now);
  }
  void EndCrowd(Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    crowd_.Remove(1, now);
  }

  Figures Look(Time now) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return {busy_.count, crowd_.count, asked_, busy_.Nanos(now), crowd_.Nanos(now)};
  }

 private:
  // A count, and for how long it has been above 0.
  struct Meter {
    size_t count = 0;
    Time since{};  // above 0
    std::chrono::nanoseconds before{0};

    void Add(size_t more, Time now) {
      if (count == 0) since = now;
      count += more;
    }
    void Remove(size_t fewer, Time now) {
      VARVE_ASSERT(fewer <= count);
      count -= fewer;
      if (count == 0 && fewer > 0) before += now - since;
    }
    uint64_t Nanos(Time now) const {
      const auto present = count > 0 && now > since ? now - since : std::chrono::nanoseconds(0);
      return static_cast<uint64_t>((before + present).count());
    }
  };

  mutable absl::Mutex mutex_;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  Meter busy_ ABSL_GUARDED_BY(mutex_);
  Meter crowd_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
