// The pauses between attempts to connect. Each pause is up to twice as long as the one before, and
// is shortened at random so that the clients of a server that went away do not all come back at the
// same moment.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

#include "util/base/assert.h"

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
    VARVE_ASSERT(first_ <= pause_ && pause_ <= last_);
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
