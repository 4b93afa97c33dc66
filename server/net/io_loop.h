// One I/O thread: it serves its connections in rounds. A round receives and parses all that is
// ready, executes it, pushes the store once, and sends. While there is work the rounds follow each
// other; when there is none the loop syncs the log, polls or sleeps (server/net/idle_policy.h), in
// one epoll descriptor that watches the sockets and the inbox.
//
// Replies that wait for the log are parked in ascending order of what they wait for and released
// by one coalesced wake-up for each group that became durable.
//
// Thread-safety: Run() is the body of the loop's thread. The functions up to seconds() may be
// called on any thread; those for sessions belong to the loop's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "server/execution/execution_policy.h"
#include "server/execution/server_state.h"
#include "server/net/handshake_turns.h"
#include "server/net/idle_policy.h"
#include "server/net/loop_inbox.h"
#include "server/net/remote_rounds.h"
#include "server/net/round_helpers.h"
#include "server/net/session.h"
#include "server/net/upkeep_pool.h"
#include "structure/elastic_pool.h"
#include "structure/thread_pool.h"

namespace varve {

// The threads to which I/O loops hand work: the pool, the thread for maintenance, and those that
// may wait for a store on other machines.
struct LoopPools {
  ThreadPool* pool;
  UpkeepPool* maintenance;
  ElasticPool* store;
};

class IoLoop {
 public:
  // Requires: the pools outlive the loop's sessions and are stopped before the loop is destroyed.
  // `times`: where the loop says how busy it is; outlives the loop.
  IoLoop(ServerState* server, const LoopPools& pools, LoopTimes* times);
  ~IoLoop();
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  // Returns whether the system gave the descriptors that the loop needs; Run() requires it.
  bool valid() const { return epoll_ >= 0 && inbox_.descriptor() >= 0; }

  // Serves until BeginDrain() has been called and all connections are closed, or until Abort().
  void Run();

  // Takes over a connected, non-blocking socket.
  void Adopt(LoopInbox::Connection connection);
  // The store's durable_sequence() or log_status() changed.
  void OnDurabilityChanged() { inbox_.NoteDurability(); }
  // A session's batch is back from the pool.
  void Complete(std::shared_ptr<Session> session);
  // Something was left in the session's mailbox.
  void NoteMail(std::shared_ptr<Session> session);
  // The loop reads nothing more, answers what was read, then closes each connection.
  void BeginDrain() { inbox_.RequestDrain(); }
  // Closes all connections at once.
  void Abort() { inbox_.RequestAbort(); }
  bool aborted() const { return inbox_.aborted(); }
  // Returns the seconds that the loop has counted, about.
  uint32_t seconds() const { return seconds_.load(std::memory_order_relaxed); }

  // --- For sessions, on the loop's thread --------------------------------------------------------
  // The session takes part in the next round.
  void Schedule(Session* session);
  // The session takes part in a round again once `durable_after` is durable.
  void Park(std::shared_ptr<Session> session, SequenceNumber durable_after);
  void Remove(Session* session);
  // Calls Release() of the session after `delay` and lets it take part in a round.
  void Hold(std::shared_ptr<Session> session, Session::Wait wait, std::chrono::milliseconds delay);
  // Has a thread of the pool call `task`. False: the pool's queue is full.
  [[nodiscard]] bool RunOnPool(ThreadPool::Task task) {
    return pools_.pool->TrySubmit(std::move(task));
  }
  // Returns whether the log had failed before this round began: what is read shows only what is
  // durable.
  bool log_failed() const { return !log_error_.empty(); }
  // Returns the memory in which sessions receive what is too little for memory of their own.
  absl::Span<char> scratch() { return absl::MakeSpan(scratch_); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int kEventsPerRound = 256;
  static constexpr size_t kScratchBytes = 64u << 10;

  // A session that waits for a sequence number, and one that waits for a time.
  struct Parked {
    SequenceNumber durable_after;
    std::shared_ptr<Session> session;
  };
  struct Held {
    Time until;
    Session::Wait wait;
    std::weak_ptr<Session> session;
  };
  struct HeldSessions {
    std::vector<Held> sessions;
    Time first = Time::max();  // none of them is to be released before
  };

  void Round();
  // Waits for events for at most so many milliseconds, and schedules the sessions they are for.
  void CollectEvents(int timeout);
  void CollectInbox();
  void Welcome(LoopInbox::Connection connection);
  void ReleaseParked();
  void ReleaseHeld(Time now);
  void ExecuteRound();
  void ExecuteBatches();
  // Returns whether the session's batch is executed here; if not it went to a pool, or to a store
  // on other machines, or it waits.
  [[nodiscard]] bool IsPlacedHere(Session* session, bool writers_wait);
  // Hands the session to the pool for the next step of its handshake; where that can't be now, the
  // session waits for its turn or for a little while. Null: nothing is to be done.
  void DispatchHandshake(std::shared_ptr<Session> session);
  // A handshake is back from the pool, or did not get there: returns the one whose turn it is, if
  // any waits.
  std::shared_ptr<Session> NextHandshake();
  // Hands the batch to the pool of `placement`; false when its queue is full.
  [[nodiscard]] bool Dispatch(Session* session, Placement placement);
  void Execute(absl::Span<Session* const> sessions);
  // Ends a round's execution: nothing that a crash of the process would take back is in the replies
  // that leave now.
  void PushRound();
  // Hands what this round wrote, or earlier ones kept back, to the log's threads.
  void PushKept();
  // Called when there is nothing to do: syncs, polls or sleeps.
  void Rest();
  // Return whether there may be something to do again.
  [[nodiscard]] bool SyncHere();
  [[nodiscard]] bool PollSockets();
  // Returns how many milliseconds the loop may sleep until it has to visit or release sessions.
  int SleepTime() const;
  // Lets go of sessions that were removed: what takes long goes to the pool.
  void FreeRemoved();
  void VisitSessions();
  void CloseAll();

  ServerState* const server_;
  const LoopPools pools_;
  LoopTimes& times_;
  const int epoll_;
  LoopInbox inbox_;
  LoopInbox::Contents left_;  // what was taken from the inbox
  std::vector<char> scratch_;

  absl::flat_hash_map<Session*, std::shared_ptr<Session>> sessions_;
  std::vector<Session*> scheduled_;  // for the next round
  std::vector<Session*> round_;
  std::vector<Session*> executed_;                 // in this round, here
  std::vector<BatchExecutor*> batches_;            // of some of them
  std::vector<std::shared_ptr<Session>> removed_;  // are freed once no worker has them
  std::vector<Parked> parked_;                     // what they wait for ascends
  HeldSessions held_;
  HandshakeTurns<Session> handshakes_;

  RoundExecutor executor_;
  RoundHelpers helpers_;
  RemoteRounds remote_;
  IdlePolicy idle_policy_;
  bool unpushed_ = false;  // something that was written here is not pushed
  bool drain_seen_ = false;
  std::string log_error_;  // empty: the log has not failed
  Time next_visit_{};
  std::atomic<uint32_t> seconds_{0};
};

}  // namespace varve
