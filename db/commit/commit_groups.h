// Commit groups let one thread take the serial part of a commit for all that arrive at the same
// time. A thread that joins while nobody leads becomes the leader: it takes the commit lock once,
// and serves its own batch and those of the threads that join meanwhile, in the order in which they
// joined. So what that part changes (the sequences, the ends of the log's buffer and of the write
// buffer) stays in the cache of one processor, and the lock does not wander.
//
// A leader serves kMostServed threads at most; then the next one in the queue leads.
//
// One group in 64 is timed, so that it shows for how long a batch holds the lock.
//
// Thread-safety: any thread may join. A member belongs to the thread that joined with it, but the
// leader uses it until Join() returns.
// Invariants: (1) At most one thread leads. (2) Members are served in the order of their joining.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "structure/hand_over.h"

namespace varve {

class CommitGroups {
 public:
  // A thread's place in the queue. It lives on the stack of that thread.
  class Member {
   protected:
    // Returns whether the thread has not been served and does not sleep. This is always true of the
    // leader's own member.
    bool is_awake() const { return turn_.is_looked_for(); }

   private:
    friend class CommitGroups;
    std::atomic<Member*> next_{nullptr};
    HandOver turn_;
  };

  CommitGroups() = default;
  CommitGroups(const CommitGroups&) = delete;
  CommitGroups& operator=(const CommitGroups&) = delete;

  // Joins the queue. Returns true if the caller leads, which then has to call Lead(); returns false
  // once the leader has served `member`.
  [[nodiscard]] bool Join(Member* member);
  // Serves `leader`, the caller's member, and those behind it. Before it serves a member, it calls
  // `fetch` with the next one, whose cache lines `fetch` asks for. Returns how many were served.
  // Requires: `serve` does not throw, nor wait for a thread whose member it has not served before;
  // the caller holds the lock that leaders hold.
  int Lead(Member* leader, absl::FunctionRef<void(Member*)> serve,
           absl::FunctionRef<void(Member*)> fetch);

  // Return the batches in the groups that were timed, and how long serving these groups took.
  uint64_t timed_batches() const { return timed_batches_.load(std::memory_order_relaxed); }
  uint64_t timed_nanos() const { return timed_nanos_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kMostServed = 64;
  static constexpr uint64_t kGroupsPerTimed = 64;
  enum Word : uint32_t { kServed = HandOver::kFirstWord, kLeads };

  int ServeAll(Member* leader, absl::FunctionRef<void(Member*)> serve,
               absl::FunctionRef<void(Member*)> fetch);

  uint64_t groups_ = 0;  // the leader's, as are the additions to the next two
  std::atomic<uint64_t> timed_batches_{0}, timed_nanos_{0};
  alignas(64) std::atomic<Member*> last_{nullptr};  // of the queue; null: nobody leads
};

}  // namespace varve
