// Requests as a cache gets them, and the cache that true LRU would be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>
#include <unordered_map>
#include <vector>

namespace varve::testing {

// Numbers of keys, the hottest first, by Zipf's distribution.
class ZipfKeys {
 public:
  ZipfKeys(size_t keys, double theta, uint64_t seed = 42) : random_(seed) {
    double sum = 0;
    for (size_t key = 1; key <= keys; ++key)
      sums_.push_back(sum += 1 / std::pow(static_cast<double>(key), theta));
  }
  size_t Next() {
    const double at = std::uniform_real_distribution<>(0, sums_.back())(random_);
    const auto found = std::lower_bound(sums_.begin(), sums_.end(), at);
    return std::min(static_cast<size_t>(found - sums_.begin()), sums_.size() - 1);
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> sums_;
};

class TrueLru {
 public:
  explicit TrueLru(size_t capacity) : capacity_(capacity) {}
  // Returns whether the key was there; it is now.
  bool Use(size_t key) {
    const auto found = places_.find(key);
    const bool hit = found != places_.end();
    if (hit) order_.erase(found->second);
    order_.push_front(key);
    places_[key] = order_.begin();
    if (order_.size() > capacity_) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    return hit;
  }

 private:
  const size_t capacity_;
  std::list<size_t> order_;
  std::unordered_map<size_t, std::list<size_t>::iterator> places_;
};

}  // namespace varve::testing
