// The loop inbox holds what other threads hand to an I/O loop, and wakes the loop. The loop watches
// descriptor() with EPOLLET, so that no thread has to read it: each Wake() is an event of its own.
//
// Thread-safety: the functions of the first part may be called on any thread, those of the second
// belong to the loop's thread.
//
// Invariants: a thread that leaves something wakes the loop afterwards. While woken() is true no
// thread writes to the descriptor, so the loop looks at woken() before it sleeps.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/net/door.h"

namespace varve {

class Session;

class LoopInbox {
 public:
  struct Connection {
    int descriptor;  // connected, non-blocking
    std::string address;
    std::string local_address;
    Door door;
  };
  struct Contents {
    std::vector<Connection> connections;
    std::vector<std::shared_ptr<Session>> completed;  // their batches are back from workers
    std::vector<std::shared_ptr<Session>> mailed;     // something lies in their mailboxes
  };

  LoopInbox();
  ~LoopInbox();
  LoopInbox(const LoopInbox&) = delete;
  LoopInbox& operator=(const LoopInbox&) = delete;

  void Leave(Connection connection) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveCompleted(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveMailed(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteDurability();
  void RequestDrain();
  void RequestAbort();
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

  // --- On the loop's thread ----------------------------------------------------------------------
  // Negative: the system gives no more descriptors.
  int descriptor() const { return event_; }
  // From now on the loop is woken for what is left. It looks at all of the inbox afterwards.
  void BeginLooking() { woken_.store(false); }
  bool woken() const { return woken_.load(std::memory_order_relaxed); }
  // Nobody wakes the loop until BeginLooking(). For a loop that will not sleep before that.
  void SuppressWakes() { woken_.store(true); }
  bool TakeDurabilityChange() { return durability_changed_.exchange(false); }
  bool draining() const { return draining_.load(); }
  // Exchanges what was left with `*contents`, which is empty. Returns whether there is anything.
  [[nodiscard]] bool Take(Contents* contents) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Wake();

  const int event_;
  std::atomic<bool> woken_{false};
  std::atomic<bool> durability_changed_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> aborted_{false};
  absl::Mutex mutex_;
  Contents contents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
