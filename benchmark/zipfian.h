// A Zipfian draws numbers below a bound, number i with a probability proportional to 1 / (i +
// 1)^0.99, as in YCSB. The method is that of Gray et al., "Quickly Generating Billion-Record
// Synthetic Databases" (1994): one power a draw.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "benchmark/workload.h"

namespace varve::bench {

class Zipfian {
 public:
  explicit Zipfian(uint64_t bound) : bound_(static_cast<double>(bound)), most_(bound - 1) {
    for (uint64_t i = 1; i <= bound; ++i) sum_ += std::pow(static_cast<double>(i), -kTheta);
    eta_ = (1 - std::pow(2 / bound_, 1 - kTheta)) / (1 - kFirstTwo / sum_);
  }

  uint64_t Draw(Random* random) const {
    const double share =
        static_cast<double>(random->Below(UINT32_MAX)) / static_cast<double>(UINT32_MAX);
    if (share * sum_ < 1) return 0;
    if (share * sum_ < kFirstTwo) return std::min<uint64_t>(1, most_);
    const double drawn = bound_ * std::pow(eta_ * share - eta_ + 1, 1 / (1 - kTheta));
    return std::min(static_cast<uint64_t>(drawn), most_);
  }

 private:
  static constexpr double kTheta = 0.99;
  static constexpr double kFirstTwo = 1.5034777750283594;  // 1 + 2^-kTheta

  const double bound_;
  const uint64_t most_;
  double sum_ = 0;  // of all weights
  double eta_ = 0;
};

// Spreads the numbers below `bound` over all of them, so that frequent ones are no neighbours. The
// factor is a prime, so that no two numbers become the same.
inline uint64_t Spread(uint64_t number, uint64_t bound) { return number * 2'654'435'761 % bound; }

}  // namespace varve::bench
