// How long the operations of a thread take, and what the whole work of a row came to.
//
// Reading the clock costs about 25 ns, which would distort the fastest rows. So an operation in
// `every` is timed, between two readings; with `every` 1 each one is, by one reading: from the
// return of the one before, which includes making the next key.
//
// Not thread-safe: each thread has its own Latencies.
#pragma once

#include <chrono>

#include "benchmark/histogram.h"

namespace varve::bench {

using Clock = std::chrono::steady_clock;

class Latencies {
 public:
  explicit Latencies(uint64_t every) : every_(every), left_(every), last_(Clock::now()) {}

  // Call it when the first operation is about to start.
  void Start() { last_ = Clock::now(); }

  template <typename Operation>
  void Time(Operation&& operation) {
    if (every_ == 1) {
      operation();
      const Clock::time_point now = Clock::now();
      Record(now - last_);
      last_ = now;
      return;
    }
    if (--left_ > 0) {
      operation();
      return;
    }
    left_ = every_;
    const Clock::time_point begin = Clock::now();
    operation();
    Record(Clock::now() - begin);
  }

  void Record(Clock::duration taken) {
    histogram_.Record(
        static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count()),
        1);
  }

  const Histogram& histogram() const { return histogram_; }

 private:
  const uint64_t every_;
  uint64_t left_;
  Clock::time_point last_;
  Histogram histogram_;
};

struct Timing {
  double seconds = 0;      // from the first start to the last end
  double cpu_seconds = 0;  // of the process meanwhile
  Histogram latencies;     // empty where the row has none
  double writes = 0;       // made beside, where that is part of the row
};

}  // namespace varve::bench
