// Pauses between attempts: each up to twice as long as the one before, shortened at random so that
// the clients of a server that went away don't all come back at the same moment. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace varve {

class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Backoff(Milliseconds first, Milliseconds last, uint32_t seed = std::random_device()())
      : first_(std::max(first, Milliseconds(1))),
        last_(std::max(last, first_)),
        pause_(first_),
        random_(seed) {}

  // The next pause: from half of d to d, where d doubles from `first` to `last`.
  Milliseconds Next() {
    const Milliseconds longest = pause_;
    pause_ = std::min(pause_ * 2, last_);
    return Milliseconds(std::uniform_int_distribution<int64_t>((longest.count() + 1) / 2,
                                                               longest.count())(random_));
  }
  void Reset() { pause_ = first_; }

 private:
  const Milliseconds first_;
  const Milliseconds last_;
  Milliseconds pause_;
  std::minstd_rand random_;
};

}  // namespace varve
