// The pauses between the attempts of a call. Each is up to twice as long as the one before, and is
// shortened at random, so that the calls that wait for a region do not all come back at once.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace varve {

class RetryPace {
 public:
  using Milliseconds = std::chrono::milliseconds;

  static constexpr Milliseconds kFirst{10};
  static constexpr Milliseconds kLast{1'000};

  // From half of d to d, where d doubles from kFirst to kLast.
  Milliseconds Next() {
    const Milliseconds longest = pause_;
    pause_ = std::min(pause_ * 2, kLast);
    static thread_local std::minstd_rand random(std::random_device{}());
    return Milliseconds(
        std::uniform_int_distribution<int64_t>(longest.count() / 2, longest.count())(random));
  }

 private:
  Milliseconds pause_ = kFirst;
};

}  // namespace varve
