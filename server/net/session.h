// One connection. It reads what arrived into one batch of requests, has it executed where the
// policy says, and sends the replies in order, each when its gate is durable.
//
// Threads: everything runs on the I/O thread of its loop, except ExecuteOnWorker(). While a batch
// is on the pool, or a helper of the loop may take it (in flight), the I/O thread touches neither
// the batch, the input, the executor nor the worker's replies; the hand-over goes through the
// pool's queue or the round's SharedWork, and back through IoLoop::Complete(). At most one batch
// exists at a time, so order needs no lock.
//
// Backpressure: nothing is read while a batch is unfinished, and no batch is begun or continued
// while more than --unsent-max-bytes of replies are unsent.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/gated_replies.h"
#include "server/clients/output_gauge.h"
#include "server/execution/batch_executor.h"
#include "server/execution/command_context.h"
#include "server/execution/execution_policy.h"
#include "server/requests/request_batch.h"
#include "util/resp/resp_buffer.h"
#include "util/resp/resp_parser.h"

namespace varve {

class IoLoop;

class Session : public std::enable_shared_from_this<Session> {
 public:
  // Takes the connected, non-blocking socket `descriptor`, which is already counted in
  // ServerState::clients.
  Session(IoLoop* loop, ServerState* server, int descriptor, std::string address,
          std::string local_address);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int descriptor() const { return descriptor_; }
  bool closed() const { return closed_; }
  bool in_flight() const { return in_flight_; }
  // What it listens to should be left by LeaveOnWorker() before it is destroyed.
  bool LeavesSlowly() const;

  // --- The steps of a round, in this order; each does nothing when there is nothing to do --------
  void NoteEvents(uint32_t epoll_events);
  void ReadAndParse(bool draining);
  // If the batch runs here and is a few GETs (plain SETs) alone: adds its keys (its writes), to be
  // executed together with those of other sessions, and returns true. GETs join those of the same
  // namespace; kSelectedNamespace becomes that of the session. Then the answer follows at once;
  // GETs of which not all were read (false) are executed by Execute().
  [[nodiscard]] bool AddGets(std::vector<std::string_view>* keys, NamespaceId* space,
                             bool writers_wait);
  [[nodiscard]] bool AnswerGets(const absl::Status& status, absl::Span<MultiGetResult>* results,
                                uint64_t nanos_each);
  [[nodiscard]] bool AddSets(WriteBatch* writes, bool writers_wait);
  void AnswerSets(const absl::StatusOr<CommitResult>& committed, uint64_t nanos_each);
  // What the batch is worth, in nanoseconds, if it reads enough, and writes nothing, to be executed
  // by a helper of the loop; else 0.
  int64_t WorthSharing(bool writers_wait) const;
  // From now on a worker may execute the batch, by ExecuteOnWorker(): it is in flight until
  // TakeBack(), or OnCompleted().
  void Lend();
  void TakeBack() { in_flight_ = false; }
  // Executes the batch here (true) or hands it to the pool. Sets `*submitted` when the store must
  // be pushed for what it wrote.
  [[nodiscard]] bool Execute(bool writers_wait, bool* submitted);
  // The push for this round failed: what the batch wrote is not acknowledged, and what it read is
  // not shown.
  void FailRound(std::string_view error);
  // Sends what may leave and parks the rest.
  void Flush(SequenceNumber durable);
  // Asks for another round, closes, or waits for an event.
  void Settle(bool draining);

  // Once a second: gives back memory that an idle connection doesn't need, and closes one that is
  // idle or stalled for too long.
  void Visit();
  // The log has failed: what waits for more than `durable` gets an error.
  void FailParked(SequenceNumber durable, std::string_view error);
  // Something lies in the mailbox.
  void OnMail();
  // The time of IoLoop::Hold() is over.
  void Release() { held_ = false; }
  // The batch came back from the pool.
  void OnCompleted();
  // Closes now; if a batch is in flight, the descriptor stays open until it is back.
  void Close();

  // --- On a worker -------------------------------------------------------------------------------
  void ExecuteOnWorker();
  // For one that is closed and not in flight.
  void LeaveOnWorker();

  bool scheduled = false;  // in the loop's list for the next round
  bool parked = false;     // in the loop's list of those waiting for a gate

 private:
  void Read();
  void Parse();
  void AddRequest(size_t first);
  // The batch is complete, not begun, may be executed now, and small enough to join others.
  bool MayJoin(bool writers_wait) const;
  Placement Place(bool writers_wait) const;
  // Runs the executor once and measures what a key costs.
  BatchExecutor::Progress RunExecutor(GatedReplies* replies);
  // The client has to give the password first.
  bool MustLogIn() const { return !client_.authenticated && server_->clients.password.needed(); }
  // Executes, sends and reads nothing for as long as that.
  void HoldBack(std::chrono::milliseconds delay);
  // Hands the batch to the pool; false when its queue is full.
  bool Dispatch(Placement placement);
  // The push that goes before the replies of the last RunExecutor().
  absl::Status PushFromWorker();
  // Nobody is there to take the reply that is being worked on.
  bool Abandoned() const;
  void FinishBatch();
  // Moves messages of others behind the replies, where no reply is under way.
  void TakeMail();
  // Shows others the figures of the connection.
  void ShowFigures();
  // Counts what the connection holds among that of all connections, and has the largest closed when
  // it is too much.
  void CountMemory();
  bool OutputFull() const;
  // Sends the front of `replies` without blocking; false when the connection is broken.
  bool Send(GatedReplies* replies, SequenceNumber durable, bool* would_block);

  IoLoop* const loop_;
  ServerState* const server_;
  const int descriptor_;
  ClientState client_;

  ByteBuffer input_;
  RespParser parser_;
  RequestBatch batch_;
  BatchExecutor executor_;
  GatedReplies output_;
  OutputGauge output_gauge_;
  GatedReplies worker_replies_;
  std::string protocol_error_;  // to be answered after the batch
  uint32_t executions_ = 0;

  bool readable_ = true;    // the socket may have bytes that were not read
  bool writable_ = true;    // the socket may take bytes
  bool hungry_ = true;      // what was read holds no further complete request
  bool has_batch_ = false;  // a batch is unfinished
  bool in_flight_ = false;  // and a worker has it, or may take it
  // The end of the stream was announced, behind bytes that may still be unread.
  bool peer_closing_ = false;
  bool peer_closed_ = false;     // and reached
  bool reset_ = false;           // the connection is gone in both directions
  bool log_had_failed_ = false;  // when the batch was handed over
  uint32_t active_at_ = 0;       // IoLoop::seconds() when bytes came or went last
  bool held_ = false;            // nothing is executed, sent or read until the loop calls Release()
  bool closed_ = false;
  bool send_from_worker_ = false;
  BatchExecutor::Progress worker_progress_ = BatchExecutor::Progress::kDone;
  bool worker_broken_ = false;
};

}  // namespace varve
