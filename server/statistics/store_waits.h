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
    size_t in_flight = 0;     // requests that the store has not answered
    size_t waiting = 0;       // connections whose requests wait for room
    uint64_t asked = 0;       // requests so far
    uint64_t busy_nanos = 0;  // for which the store has had requests, altogether
  };

  // `remote`: the store waits for other machines (StoreCapabilities::remote), for `deadline` at the
  // most. Else nothing is counted.
  StoreWaits(bool remote, std::chrono::milliseconds deadline)
      : remote_(remote), deadline_(deadline) {}
  bool remote() const { return remote_; }
  // Returns the deadline of all calls of the store that a command makes which begins now.
  Time NewDeadline() const {
    return remote_ ? std::chrono::steady_clock::now() + deadline_ : Time::max();
  }

  // The store is asked `requests` requests, or has answered so many.
  void Begin(size_t requests, Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    asked_ += requests;
    if (in_flight_ == 0) since_ = now;
    in_flight_ += requests;
  }
  void End(size_t requests, Time now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(requests <= in_flight_ && requests > 0);
    in_flight_ -= requests;
    if (in_flight_ == 0) busy_ += now - since_;
  }
  // A connection waits for room, or does not wait any more.
  void BeginCrowd() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ++waiting_;
  }
  void EndCrowd() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(waiting_ > 0);
    --waiting_;
  }

  Figures Look(Time now) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::chrono::nanoseconds busy = busy_;
    if (in_flight_ > 0 && now > since_) busy += now - since_;
    return {in_flight_, waiting_, asked_, static_cast<uint64_t>(busy.count())};
  }

 private:
  const bool remote_;
  const std::chrono::milliseconds deadline_;
  mutable absl::Mutex mutex_;
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;
  Time since_ ABSL_GUARDED_BY(mutex_){};                      // when in_flight_ was 0 last
  std::chrono::nanoseconds busy_ ABSL_GUARDED_BY(mutex_){0};  // before that
};

}  // namespace varve
