// Latencies measures how long the operations of one thread take. Timing holds the result of a whole
// row.
//
// Reading the clock costs about 25 ns, which would distort the fastest rows. So Latencies times one
// operation in `every`, between two readings. With `every` 1 it times each operation by one
// reading, from the return of the operation before, which includes making the next key.
//
// Thread-safety: each thread has its own Latencies.
#pragma once

#include <chrono>

#include "benchmark/histogram.h"

namespace varve::bench {

using Clock = std::chrono::steady_clock;

class Latencies {
 public:
  explicit Latencies(uint64_t every) : every_(every), left_(every), last_(Clock::now()) {}

  // Requires: the caller calls this just before the first operation.
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
  double cpu_seconds = 0;  // of the process during that time
  Histogram latencies;     // empty where the row has none
  double writes = 0;       // made at the same time, in rows that do so
};

}  // namespace varve::bench
