#include "db/commit/commit_groups.h"

#include <chrono>

#include "util/base/spin.h"
#include "util/os/steady_condition.h"

namespace varve {

bool CommitGroups::Join(Member* member) {
  Member* const before = last_.exchange(member, std::memory_order_acq_rel);
  if (before == nullptr) return true;
  before->next_.store(member, std::memory_order_release);
  return member->turn_.Await() == kLeads;
}

int CommitGroups::Lead(Member* leader, absl::FunctionRef<void(Member*)> serve,
                       absl::FunctionRef<void(Member*)> fetch) {
  if (groups_++ % kGroupsPerTimed != 0) return ServeAll(leader, serve, fetch);
  const SteadyTime begin = SteadyNow();
  const int served = ServeAll(leader, serve, fetch);
  const auto nanos = static_cast<uint64_t>((SteadyNow() - begin) / std::chrono::nanoseconds(1));
  timed_nanos_.fetch_add(nanos, std::memory_order_relaxed);
  timed_batches_.fetch_add(static_cast<uint64_t>(served), std::memory_order_relaxed);
  return served;
}

int CommitGroups::ServeAll(Member* leader, absl::FunctionRef<void(Member*)> serve,
                           absl::FunctionRef<void(Member*)> fetch) {
  Member* member = leader;
  for (int served = 1;; ++served) {
    if (Member* const behind = member->next_.load(std::memory_order_acquire); behind != nullptr)
      fetch(behind);
    serve(member);
    Member* next = member->next_.load(std::memory_order_acquire);
    if (next == nullptr) {
      Member* last = member;
      const bool is_last = last_.compare_exchange_strong(last, nullptr, std::memory_order_acq_rel);
      // Otherwise a thread has joined and is about to name itself.
      SpinWait wait;
      while (!is_last && (next = member->next_.load(std::memory_order_acquire)) == nullptr)
        wait.Pause();
    }
    if (member != leader) member->turn_.Tell(kServed);
    if (next == nullptr) return served;
    if (served == kMostServed) {
      next->turn_.Tell(kLeads);
      return served;
    }
    member = next;
  }
}

}  // namespace varve
