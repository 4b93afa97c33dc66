// One connection as a state machine. A session holds the bytes of its connection: it receives them,
// parses them to a batch of requests, and sends the replies in order, each once the sequence number
// that it waits for is durable. Its BatchExecutor executes the batch, on the loop's thread or on a
// worker. At most one batch exists at a time, so the order of replies needs no lock.
//
//   kArriving --first byte of plain text--> kReading
//   kArriving --first byte of TLS--> kHandshake --done, on workers--> kReading
//   kReading --parsed--> kReady --done--> kReading
//   kReady --to a worker--> kInFlight --back--> kReady
//   kReady --login delay--> kHeld --Release()--> kReading, kReady or kFinishing
//   kReady, kReading --last reply written--> kFinishing
//   kArriving, kReading --not served--> kFinishing
//   every state --Close()--> kClosed, by way of kClosedInFlight while a worker has the batch
//
// A connection to a port without TLS begins in kReading. In kHandshake, workers do each step that
// the peer's bytes allow: kHandshake --to a worker--> kInFlight --back--> kHandshake.
//
// Thread-safety: everything runs on the thread of the session's loop, except ExecuteOnWorker() and
// LeaveOnWorker(). While the session is in flight, the loop's thread touches neither the batch, the
// input, the executor nor worker_. The hand-over goes through the pool's queue or the round's
// SharedWork, and back through IoLoop::Complete().
//
// Invariants: the batch is empty in kArriving, kReading and kFinishing, in kHandshake and while a
// worker has a handshake, and in no other open state but kHeld, where its last request may just
// have been answered. Nothing is read while a batch is unfinished,
// and no batch is begun or continued while more than --unsent-max-bytes of replies are unsent.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/clients/client_state.h"
#include "server/clients/output_gauge.h"
#include "server/clients/pending_replies.h"
#include "server/execution/batch_executor.h"
#include "server/execution/server_state.h"
#include "server/net/client_socket.h"
#include "server/net/door.h"
#include "server/net/loop_inbox.h"
#include "server/remote/remote_run.h"
#include "server/requests/request_batch.h"
#include "util/resp/resp_buffer.h"
#include "util/resp/resp_parser.h"

namespace varve {

class IoLoop;

// Returns whether so much waits for the client that nothing is added.
inline bool IsFull(const PendingReplies& output, const ServerState& server) {
  return output.size() >= server.live.unsent_max_bytes;
}

class Session : public std::enable_shared_from_this<Session> {
 public:
  enum class State : uint8_t {
    kArriving,        // nothing has come: the first byte tells TLS from plain text
    kHandshake,       // the handshake waits for the peer, or for a worker
    kReading,         // has no batch: receives and parses
    kReady,           // a batch waits to be executed, or to go on
    kHeld,            // receives, executes and sends nothing until Release()
    kInFlight,        // a worker has the batch, or may take it
    kFinishing,       // answers nothing more: closes once its replies have left
    kClosedInFlight,  // is closed, but a worker still has the batch
    kClosed,
  };

  // The reasons why a session is in IoLoop::Hold(): the delay of a login, in kHeld; the end of a
  // pause of clients or of the time for a commit, in kReady; room in the pool for its handshake, in
  // kHandshake. RemoteRounds has those that wait for room among the requests to a remote store, in
  // kReady.
  enum class Wait : uint8_t { kLogin, kPause, kHandshake, kRoom };

  // Takes over the connection, which Clients::connected counts already.
  Session(IoLoop* loop, ServerState* server, LoopInbox::Connection connection);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ClientSocket& socket() { return socket_; }
  bool closed() const { return state_ == State::kClosed || state_ == State::kClosedInFlight; }
  bool in_flight() const { return state_ == State::kInFlight || state_ == State::kClosedInFlight; }
  // Returns whether a worker can go on with the handshake now.
  bool ShakesHands() const;
  // Returns whether the batch may be executed now.
  bool ready() const {
    return state_ == State::kReady && !HoldsBack() && (!waits_ || server_->draining) &&
           !remote.awaits_room;
  }
  // Returns whether LeaveOnWorker() should be called before the session is destroyed.
  bool LeavesSlowly() const;

  // --- The steps of a round behind socket().NoteEvents(), in this order; each does nothing when
  // there is nothing to do ------------------------------------------------------------------------
  void ReadAndParse(bool draining);
  BatchExecutor& executor() { return executor_; }
  // The batch is executed on the loop's thread: returns the executor, whose replies go to the
  // session. Requires: ready().
  BatchExecutor* BeginHere();
  // The executor has gone as far as it does in this round.
  void OnExecuted();
  // The push for this round failed: what the batch wrote is not acknowledged, and what it read is
  // not shown.
  void FailRound(std::string_view error);
  // The log has failed: replies that wait for more than `durable` become errors.
  void FailWaiting(SequenceNumber durable, std::string_view error);
  // Sends what may leave, and has the loop wait for what the rest waits for.
  void Flush(SequenceNumber durable);
  // Asks for another round, closes, or waits for an event.
  void EndRound(bool draining);

  // --- Between rounds ----------------------------------------------------------------------------
  // From now on a worker may execute the batch, or go on with the handshake, by
  // ExecuteOnWorker(), until TakeBack() or OnCompleted().
  void Lend();
  void TakeBack();
  // Returns whether a worker has the handshake, or had it until OnCompleted() is called.
  bool lent_for_handshake() const { return in_flight() && batch_.empty(); }
  // The handshake waits until Release(), as other sessions' handshakes are before it.
  void AwaitTurn();
  // The batch, or the handshake, came back from a worker.
  void OnCompleted();
  // Something lies in the mailbox.
  void OnMail();
  // The time of IoLoop::Hold() is over.
  void Release(Wait wait);
  // Gives back memory that an idle connection does not need, and closes one that is idle or stalled
  // for too long. Called once a second.
  void Visit();
  // Closes now; if a worker has the batch, the descriptor stays open until it is back.
  void Close();

  // --- On a worker -------------------------------------------------------------------------------
  // With `is_wanted` false the batch goes back as it is.
  void ExecuteOnWorker(bool is_wanted = true);
  // Ends the modes of a session that is closed and not in flight.
  void LeaveOnWorker();

  // The part of RemoteRounds. The loop's thread alone uses it.
  struct RemotePart {
    // The requests that a store on other machines is asked, or has answered in part.
    std::shared_ptr<RemoteRun> run;
    size_t in_flight = 0;    // requests that are on their way
    size_t bytes = 0;        // that these hold
    bool on_thread = false;  // a thread waits for them
    bool is_slow = false;    // they are in the room of those that may wait for long
    uint64_t order = 0;      // among those that are on their way in the other room
    std::chrono::steady_clock::time_point since;  // they are on their way
    bool awaits_room = false;                     // until Release(Wait::kRoom)
    uint64_t ticket = 0;  // its place among those that wait for room; 0: it has none
  };
  RemotePart remote;

  // For the loop alone.
  bool scheduled = false;  // is in its list for the next round
  bool parked = false;     // is in its list of those that wait for a sequence number

 private:
  // The part that belongs to a worker while the session is in flight.
  struct WorkerPart {
    PendingReplies replies;
    BatchExecutor::Progress progress = BatchExecutor::Progress::kDone;
    TlsConnection::Handshake handshake = TlsConnection::Handshake::kWantsInput;
    bool broken = false;    // the connection is to be closed
    bool may_send = false;  // no reply is before those of the batch
    // Noted when the batch was handed over.
    bool log_had_failed = false;
    bool may_get_messages = false;  // output_ may hold messages
  };

  void MoveTo(State next);

  // Decides by the connection's first byte how it goes on.
  void Arrive();
  // A step of the handshake is done. Behind the last one the client is served, perhaps as the user
  // that its certificate names.
  void OnHandshake();
  void Parse();
  void AddRequest(size_t first);
  // Receives, executes and sends nothing for as long as that.
  void HoldBack(std::chrono::milliseconds delay);
  // The batch is answered: forgets it.
  void FinishBatch();
  // The next request waits, or not any more: for the end of CLIENT PAUSE, or for a commit.
  void ShowWait();
  // Returns whether nobody is there to take the reply that is being worked on.
  bool Abandoned() const;
  // Returns whether the client has to take something before a request is read or executed.
  bool HoldsBack() const { return IsFull(output_, *server_) || client_.link.mailbox.inside(); }
  // Moves messages of other connections behind the replies, if no reply is under way: so an
  // invalidation stands behind the value that it is about.
  void TakeMail();
  // Sends the front of `replies`. Called by the thread that has the batch.
  ClientSocket::Sent Send(PendingReplies* replies, SequenceNumber durable);
  // Executes one slice on a worker. False: the worker leaves the rest to the loop.
  bool ExecuteSlice(bool is_first);
  // Closes the connection, and returns true, if its client is idle for too long, does not finish
  // its handshake, or does not take its replies.
  bool CloseOverdue();
  // Shows other connections the figures of this one. Counts what it holds among that of all
  // connections, and has the largest closed when it is too much.
  void ShowFigures();

  IoLoop* const loop_;
  ServerState* const server_;
  const Door door_;
  ClientSocket socket_;
  ClientState client_;
  State state_;
  ByteBuffer input_;
  RespParser parser_;
  RequestBatch batch_;
  BatchExecutor executor_;
  PendingReplies output_;
  OutputGauge output_gauge_;
  WorkerPart worker_;
  std::string protocol_error_;   // to be answered after the batch
  bool waits_ = false;           // the batch waits for a nudge, or for an instant
  bool awaits_release_ = false;  // in one of the loop's lists of those that wait for a time or turn
  std::chrono::steady_clock::time_point release_at_;  // of those for a time; the earliest
  bool needs_input_ = true;  // what was received holds no further complete request
  bool counted_as_tls_ = false;
  uint32_t active_at_ = 0;  // IoLoop::seconds() when bytes came or went last
};

}  // namespace varve
