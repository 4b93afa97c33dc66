// A failover hands the part of the primary to a follower (FAILOVER): writes wait, the store takes
// none from the moment at which a follower has everything, that follower is promoted, and this
// server follows it. No acknowledged write is lost, unless FORCE goes on without the follower's
// having everything.
//
//   kNone --Begin()--> kWaitsForSync --a follower has everything--> kInProgress
//   kInProgress --the follower is a primary, this server follows it--> kNone
//   both --the time is over, ABORT, the follower refuses--> kNone: this server stays the primary
//
// The phase is in ReplicationState::failover. A follower that was promoted can't be taken back: the
// server goes on then until it follows.
//
// Thread-safety: all functions may be called on any thread. A thread of its own does the work.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/client_options.h"
#include "server/execution/server_state.h"
#include "util/os/steady_condition.h"
#include "varve/replication.h"

namespace varve {

class Failover {
 public:
  using ConnectionTo = std::function<ClientOptions(const PrimaryAddress& server)>;

  // Requires: the server's state outlives it.
  Failover(ServerState* server, ConnectionTo connection_to);
  ~Failover();
  Failover(const Failover&) = delete;
  Failover& operator=(const Failover&) = delete;

  // ServerState::fail_over. FailedPrecondition: another one is under way, or, to abort, none is.
  // ResourceExhausted: the system gives no thread.
  [[nodiscard]] absl::Status Begin(const FailoverRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the failover that is under way; none begins any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(const FailoverRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has writes wait, and returns the follower that has everything; the store takes no writes then.
  absl::StatusOr<PrimaryAddress> WaitForFollower(const FailoverRequest& request,
                                                 SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the follower that has everything, or nothing. The target's address, if the request
  // names one, says which it may be.
  std::optional<PrimaryAddress> FindCaughtUp(const PrimaryAddress& target) const;
  absl::Status Promote(const PrimaryAddress& target, SteadyTime deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() ABSL_LOCKS_EXCLUDED(mutex_);
  // Follows the server that was promoted.
  void FollowPromoted(const PrimaryAddress& target) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for the given time; returns why the failover is to end, if it is.
  absl::Status Pause(std::chrono::milliseconds time, SteadyTime deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void HoldWrites();
  void LetWritesGo();

  ServerState& server_;
  ReplicatedStore* const store_;  // null: it can't be replicated
  const ConnectionTo connection_to_;
  absl::Mutex mutex_;
  SteadyCondition changed_;  // of the two that follow
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool abort_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
