// Who puts on disk what the rounds of a loop wrote: the log's threads, which have to be woken and
// then wake the loop, or the loop's own thread, where it would sleep otherwise. The latter saves
// both changes of threads, and the disk is asked less often, since what comes meanwhile is written
// together: without a pipeline 50 clients write 1.4 times as fast (docs/decisions/0053). But while
// it lasts nobody is served. So it is not for slow disks, nor for several loops, whose groups would
// be small; but one of them does so for a lone client.
//
// Writes are kept while there are other requests to serve; after kLongest the log's threads get
// them, so that the disk works beside the loop. For one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace varve {

class SyncPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::microseconds kLongest{500};
  static constexpr std::chrono::milliseconds kSlow{1};
  // Rounds that the log's threads serve after a slow sync; twice as many after each further one.
  static constexpr uint32_t kFewestRounds = 64, kMostRounds = 4096;

  // `is_alone`: there is no other loop.
  explicit SyncPolicy(bool is_alone) : is_alone_(is_alone) {}

  // After a round: whether what it and those before it wrote is kept. `for_lone_client`: the loop
  // serves nobody else.
  bool Keep(bool for_lone_client, Time now) {
    if (rounds_off_ > 0) {
      --rounds_off_;
      return false;
    }
    if (!is_alone_ && !for_lone_client) return false;
    if (!kept_since_) kept_since_ = now;
    return now - *kept_since_ < kLongest;
  }
  // The log's threads have it.
  void Pushed() { kept_since_.reset(); }
  // The loop's thread put it on disk, which took so long.
  void Synced(std::chrono::nanoseconds taken) {
    kept_since_.reset();
    if (taken <= kSlow) {
      pause_ = std::max(kFewestRounds, pause_ / 2);
    } else {
      rounds_off_ = pause_;
      pause_ = std::min(kMostRounds, 2 * pause_);
    }
  }

 private:
  const bool is_alone_;
  std::optional<Time> kept_since_;
  uint32_t rounds_off_ = 0;
  uint32_t pause_ = kFewestRounds;
};

}  // namespace varve
