#include "server/net/idle_policy.h"

#include <sys/resource.h>

#include <algorithm>

#include "util/base/assert.h"

namespace varve {

void IdlePolicy::NoteClient(const void* client) {
  if (client == latest_) return;
  rounds_of_one_ = 0;
  if (client != other_) rounds_of_two_ = 0;
  other_ = std::exchange(latest_, client);
  VARVE_ASSERT(rounds_of_one_ <= rounds_of_two_);
}

bool IdlePolicy::KeepsWrites(Time now) {
  if (rounds_off_ > 0) {
    --rounds_off_;
    return false;
  }
  if (!is_only_loop_ && !serves_one()) return false;
  if (!kept_since_) kept_since_ = now;
  return now - *kept_since_ < kLongestKept;
}

void IdlePolicy::Synced(std::chrono::nanoseconds taken) {
  kept_since_.reset();
  if (taken <= kSlowSync) {
    pause_ = std::max(kFewestRoundsOff, pause_ / 2);
  } else {
    rounds_off_ = pause_;
    pause_ = std::min(kMostRoundsOff, 2 * pause_);
  }
  VARVE_ASSERT(pause_ >= kFewestRoundsOff && pause_ <= kMostRoundsOff);
}

bool IdlePolicy::Polls() {
  if (!may_poll_) return false;
  if (credit_ > 0) return true;
  return ++sleeps_ % kProbeEvery == 0;
}

void IdlePolicy::Polled(bool paid) {
  VARVE_ASSERT(credit_ >= 0 && credit_ <= kMostCredit);
  credit_ = std::clamp(credit_ + (paid ? kCreditPerFind : -kCostOfMiss), 0, kMostCredit);
}

long IdlePolicy::TimesPushedOff() {
  rusage use;
  return ::getrusage(RUSAGE_THREAD, &use) == 0 ? use.ru_nivcsw : 0;
}

}  // namespace varve
