// The histogram counts latencies in buckets that are at most 1.6 % wide, so that recording costs a
// few nanoseconds whatever the range (an HDR histogram: powers of two, each divided into 64 equal
// parts).
//
// Thread-safety: one thread at a time uses a histogram.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace varve::bench {

class Histogram {
 public:
  void Record(uint64_t nanoseconds, uint64_t times) {
    counts_[Bucket(nanoseconds)] += times;
    total_ += times;
  }

  void Add(const Histogram& other) {
    for (size_t bucket = 0; bucket < counts_.size(); ++bucket)
      counts_[bucket] += other.counts_[bucket];
    total_ += other.total_;
  }

  uint64_t total() const { return total_; }

  // Returns the latency in nanoseconds that this share of all stays at or below (0.99: p99); 0 if
  // nothing was recorded.
  double Percentile(double share) const {
    const auto wanted = static_cast<uint64_t>(share * static_cast<double>(total_));
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > wanted) return Middle(bucket);
    }
    return 0;
  }

 private:
  static constexpr unsigned kPartBits = 6;
  static constexpr uint64_t kParts = uint64_t{1} << kPartBits;

  static size_t Bucket(uint64_t value) {
    if (value < kParts) return value;
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kPartBits - 1;
    return (shift + 1) * kParts + (value >> shift) - kParts;
  }

  static double Middle(size_t bucket) {
    if (bucket < kParts) return static_cast<double>(bucket);
    const size_t shift = bucket / kParts - 1;
    const uint64_t low = (bucket % kParts + kParts) << shift;
    return static_cast<double>(low) + static_cast<double>(uint64_t{1} << shift) / 2;
  }

  std::array<uint64_t, (64 - kPartBits + 1) * kParts> counts_{};
  uint64_t total_ = 0;
};

}  // namespace varve::bench
