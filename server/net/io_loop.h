// One I/O thread: an asio loop for everything occasional (posts, wake-ups, timers) and, inside it,
// an epoll descriptor of its own for the sockets, which gives explicit rounds: read and parse all
// that is ready, execute it, push the store once, send. While there is work the rounds follow each
// other with few visits to asio; when there is none the thread sleeps in asio. Before that it may
// sync the log itself (server/net/sync_policy.h), so that a disk that hangs holds up whoever comes
// then; and for one or two clients alone it asks the sockets again for a while
// (server/net/busy_poll.h).
//
// Run() is the thread's body. What is said to be for sessions belongs to the loop's thread, the
// rest may be called from any. Replies that wait for the log are parked in order of their gates and
// released by one coalesced wake-up for each group that became durable.
#pragma once

#include <asio.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/execution/execution_policy.h"
#include "server/execution/server_state.h"
#include "server/net/busy_poll.h"
#include "server/net/handler_memory.h"
#include "server/net/recent_clients.h"
#include "server/net/session.h"
#include "server/net/sync_policy.h"
#include "structure/shared_work.h"
#include "structure/thread_pool.h"

namespace varve {

class IoLoop {
 public:
  // The pools outlive the loop's sessions; they are stopped before the loop is destroyed.
  IoLoop(ServerState* server, ThreadPool* pool, ThreadPool* maintenance);
  ~IoLoop() = default;
  IoLoop(const IoLoop&) = delete;
  IoLoop& operator=(const IoLoop&) = delete;

  // Serves until BeginDrain() has been called and all connections are closed, or until Abort().
  void Run();

  // Takes over a connected, non-blocking socket.
  void Adopt(int descriptor, std::string address, std::string local_address);
  // The store's durable_sequence() or log_status() changed.
  void OnDurabilityChanged();
  // A session's batch is back from the pool.
  void Complete(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(completed_mutex_);
  // Something was left in the session's mailbox.
  void NoteMail(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(completed_mutex_);
  // Reads nothing more; answers what was read, then closes each connection.
  void BeginDrain();
  // Closes all connections at once.
  void Abort();
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }
  // Waits for the disk.
  bool syncing() const { return syncing_.load(std::memory_order_relaxed); }
  // Seconds that the loop has counted, about.
  uint32_t seconds() const { return seconds_.load(std::memory_order_relaxed); }

  // --- For sessions, on the loop's thread --------------------------------------------------------
  // Hands a batch to a pool; false when its queue is full.
  [[nodiscard]] bool Dispatch(std::shared_ptr<Session> session, Placement placement);
  // The session takes part in the next round.
  void Schedule(Session* session);
  void Park(std::shared_ptr<Session> session, SequenceNumber durable_after);
  void Remove(Session* session);
  // Calls Release() of the session after `delay` and lets it take part in a round.
  void Hold(std::shared_ptr<Session> session, std::chrono::milliseconds delay);
  // The log had failed before this round began: what is read shows only what is durable.
  bool log_failed() const { return log_failed_; }
  // Where sessions receive what is too little for memory of their own.
  absl::Span<char> scratch() { return absl::MakeSpan(scratch_); }

 private:
  static constexpr int kEventsPerRound = 256;
  static constexpr int kRoundsBetweenVisits = 32;  // to asio's own queue, while there is work
  static constexpr size_t kKeysTogether = 64;      // read in one call
  static constexpr size_t kWritesTogether = 256;   // committed in one call
  // After one of this size the next kRoundsApart rounds read apart.
  static constexpr size_t kLargeValue = 64u << 10;
  static constexpr uint32_t kRoundsApart = 64;
  static constexpr uint32_t kMeasureEvery = 16;  // joint reads
  static constexpr size_t kScratchBytes = 64u << 10;

  void Wake();
  void Round();
  // Waits up to 0 ms for events of the sockets and schedules their sessions.
  void CollectEvents();
  void CollectCompleted() ABSL_LOCKS_EXCLUDED(completed_mutex_);
  void ReleaseParked();
  void ExecuteRound();
  // Where the reads of this round are worth it, lets workers execute some of them.
  void ShareReads(bool writers_wait);
  void ExecuteShared(bool writers_wait);
  void Help();  // on a worker
  // Executes the batches of the round that are a few GETs (plain SETs) alone in one call of the
  // store: their cache misses overlap, and the commit is paid once. The clients wrote side by side,
  // so any order among them is right.
  void ReadTogether(bool writers_wait);
  void WriteTogether(bool writers_wait);
  // The end of a round's execution: nothing that a crash of the process would take back is in the
  // replies that leave now.
  void PushRound();
  // To the log's threads, what this round wrote or earlier ones kept for SyncHere().
  void PushLeft();
  // When there is nothing to do, in this order: the first two return whether there may be again.
  [[nodiscard]] bool SyncHere();
  [[nodiscard]] bool Linger();
  void Sleep();
  // Lets go of sessions that were removed: what takes long goes to the pool.
  void FreeRemoved();
  // Looks after each session, once a second.
  void VisitSessions();
  void CloseAll();

  struct Parked {
    SequenceNumber durable_after;
    std::shared_ptr<Session> session;
  };

  ServerState* const server_;
  ThreadPool* const pool_;
  ThreadPool* const maintenance_;
  // Of what is given to asio again and again.
  HandlerMemory wait_memory_, wake_memory_, visit_memory_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  asio::posix::stream_descriptor poller_;  // the epoll descriptor of the sockets
  bool poller_armed_ = false;
  asio::steady_timer visit_timer_{io_};
  std::vector<char> scratch_;

  absl::flat_hash_map<Session*, std::shared_ptr<Session>> sessions_;
  std::vector<Session*> scheduled_;  // for the next round
  std::vector<Session*> round_;
  std::vector<Session*> executed_;  // in this round, here
  bool unpushed_ = false;           // something that was written here
  SyncPolicy sync_policy_;
  std::atomic<bool> syncing_{false};
  RecentClients<Session> recent_clients_;
  BusyPoll busy_poll_;
  SharedWork<Session> shared_;      // of the round
  size_t lent_ = 0;                 // put there
  std::atomic<size_t> helpers_{0};  // on their way, or helping
  std::vector<Session*> joined_;
  std::vector<Session*> visited_;
  std::vector<std::string_view> keys_;
  std::vector<MultiGetResult> results_;
  WriteBatch writes_;
  // In which GETs are read one session at a time, since values are large.
  uint32_t rounds_apart_ = 0;
  uint32_t joint_reads_ = 0;
  // Freed at the end of a round, once no worker has them.
  std::vector<std::shared_ptr<Session>> removed_;
  std::vector<Parked> parked_;  // gates ascend
  bool log_failed_ = false;
  std::string log_error_;

  std::atomic<uint32_t> seconds_{0};
  std::atomic<bool> woken_{false};
  std::atomic<bool> durability_changed_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> aborted_{false};
  bool drain_seen_ = false;

  absl::Mutex completed_mutex_;
  std::vector<std::shared_ptr<Session>> completed_ ABSL_GUARDED_BY(completed_mutex_);
  std::vector<std::shared_ptr<Session>> completed_scratch_;
  std::vector<std::shared_ptr<Session>> mailed_ ABSL_GUARDED_BY(completed_mutex_);
  std::vector<std::shared_ptr<Session>> mailed_scratch_;
};

}  // namespace varve
