// The executors of batches. A BatchExecutor answers one connection's batch of requests in order, in
// as many steps as their replies take. It hands neighbouring GETs and plain SETs to a RequestRun; a
// RoundExecutor may have answered some of them already, together with those of other connections.
//
// Thread-safety: one thread at a time uses a BatchExecutor, not always the same one. One loop's
// thread uses a RoundExecutor.
//
//   executor.Begin(&batch);
//   executor.BeginReplies(&replies);        // on the thread that executes next
//   while (executor.Run(where) == kMore) ...;
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "server/clients/pending_replies.h"
#include "server/execution/command_context.h"
#include "server/execution/execution_policy.h"
#include "server/execution/request_checks.h"
#include "server/execution/request_run.h"
#include "server/requests/command.h"
#include "server/requests/request_batch.h"

namespace varve {

class BatchExecutor {
 public:
  enum class Progress { kDone, kMore };
  enum class Where : uint8_t { kLoop, kWorker };

  // Requires: both outlive the executor.
  BatchExecutor(ServerState* server, ClientState* client);
  BatchExecutor(const BatchExecutor&) = delete;
  BatchExecutor& operator=(const BatchExecutor&) = delete;

  // Begins to execute `batch`. Requires: it stays in place and unchanged until Run() has returned
  // kDone.
  void Begin(const RequestBatch* batch);
  // The replies of the next steps go to `*replies`.
  void BeginReplies(PendingReplies* replies);

  // Returns where the batch, or what is left of it, should be executed. Where the store is on other
  // machines, kInline is for the requests at the front that do not ask it, and kPool for threads
  // that may wait, or for a RemoteRun (server/remote/remote_run.h).
  Placement Place(bool writers_wait) const;
  // From now on the batch's commands for maintenance answer an error.
  void RefuseMaintenance() { maintenance_refused_ = true; }
  // The next request answers that its keys are away, and does not ask the store. Requires: no reply
  // is under way.
  void RefuseNext() { refused_at_ = cursor_.next; }
  // Returns whether the batch, not begun, is small and consists of requests of `kind` alone, so
  // that it may join a run of several connections.
  bool MayJoin(RequestRun::Kind kind) const;
  // Returns what the batch is worth, in nanoseconds, if it reads enough, and writes nothing, to be
  // executed by a helper of the loop; else 0.
  int64_t WorthSharing() const;

  // Goes on until the batch is done, about --reply-slice-bytes of replies were written, other
  // clients should get their slice, or the next request has to do with a value that is too large
  // for the thread. Requires: BeginReplies() was called on this thread.
  [[nodiscard]] Progress Run(Where where);
  Progress progress() const {
    const bool nothing_left = client_->close_after_reply || cursor_.next == batch().requests.size();
    const bool ended = broken_ || (stream_ == nullptr && nothing_left);
    return ended ? Progress::kDone : Progress::kMore;
  }

  // Gives back what would keep files and memory of the store in use. For when the next Run() may be
  // a long time away.
  void Rest() {
    if (stream_ != nullptr) stream_->Rest();
  }

  BatchCursor* cursor() { return &cursor_; }
  const RequestBatch& batch() const { return *cursor_.batch; }

  // Returns whether something was submitted since the last call. Then the store must be pushed
  // before replies leave.
  bool TakeSubmitted() { return std::exchange(cursor_.submitted, false); }
  // Returns whether a reply broke off, or the peer does not speak the protocol: the connection is
  // to be closed without further replies.
  bool broken() const { return broken_; }
  // Returns whether a reply is under way that takes several steps. It may show what was read before
  // messages came, so these stand behind it.
  bool replying() const { return stream_ != nullptr && !change_wait_; }
  // Returns whether part of a reply was handed out and the rest is still to come.
  bool inside_reply() const { return stream_ != nullptr && stream_began_; }
  // Returns whether Run() has returned kMore because the next request waits for the end of a pause,
  // or for room on the disk.
  bool paused() const { return paused_at_ != 0 || room_wait_.holds(); }
  // Returns whether Run() has returned kMore because the request waits: as above, or for the next
  // commit.
  bool waits() const { return paused() || change_wait_.has_value(); }
  // Returns whether what it waits for has happened meanwhile.
  bool WaitIsOver() const;
  // Returns how long it waits at most; nothing: there is no end. Requires: waits().
  std::optional<std::chrono::milliseconds> WaitLeft() const;
  // Returns whether Run() has returned kMore because its time was spent.
  bool slice_spent() const { return slice_spent_; }
  // Returns since when a reply is being produced that holds a snapshot; nothing when there is none.
  std::optional<std::chrono::steady_clock::time_point> streaming_since() const {
    if (stream_ == nullptr) return std::nullopt;
    return stream_since_;
  }
  // Returns whether a part of this batch was executed, and more is to come.
  bool continued() const { return continued_; }
  // Requests at the front were answered without Run().
  void NoteAnswered() { continued_ = progress() == Progress::kMore; }

 private:
  // The scope says which requests a slice executes where the store is on other machines: on the
  // loop's thread those that do not ask it, on a thread that may wait one more in front of them. So
  // each reply leaves before the thread waits again, nothing more is asked for a client that has
  // gone, and a stop waits for one answer of the store. The slice ends before a request outside of
  // its scope.
  enum class Scope : uint8_t { kAll, kLocal, kWaits };
  Progress RunSlice(size_t max_value_bytes, Scope scope = Scope::kAll);
  bool IsOutside(Scope scope, size_t first_of_slice) const;
  // Returns whether what comes next may take long, or ask the store for what lies on other
  // machines.
  bool NextMayWait() const;
  // Goes on with stream_. False: it is not done, and this slice ends.
  bool ContinueStream(CommandContext* context, size_t full);
  bool RunStream(CommandContext* context, size_t budget);
  // Executes requests from the cursor on. Nothing is executed where the next one belongs to
  // another thread (context->needs_pool()).
  void RunNext(CommandContext* context);
  // Returns false if the next requests form no run.
  bool RunTogether(CommandContext* context, RequestRun::Kind kind);
  void RunOne(CommandContext* context);
  // Returns whether the next request waits for the end of a pause, or for room on the disk, and
  // notes that.
  bool WaitsForPause();
  // Answers an error if the request is not to be executed. broken_: without an answer.
  bool Refuse(CommandContext* context, const RequestBatch::Request& request, Arguments arguments);
  // Refuse() calls it for the rights and the modes of a client that is Restricted().
  bool RefuseRestricted(CommandContext* context, const Command& command, Arguments arguments);
  // Refuse() calls it when there is a bound on data.
  bool RefuseByStore(CommandContext* context, const Command& command, Arguments arguments);
  bool RefuseByBounds(CommandContext* context, const Command& command, Arguments arguments);
  // Shows the request before the cursor to MONITOR, once its stream lets it be shown.
  void ShowStreamed();
  // Ends the reply to a command, which is what was written since `before`, as far as the client
  // wants it.
  void EndReply(CommandContext* context, size_t before);
  // Returns the time since the last call.
  uint64_t Lap();

  ServerState* const server_;
  ClientState* const client_;
  BatchCursor cursor_;
  std::unique_ptr<ReplyStream> stream_;  // produces the reply to the request before the cursor
  std::chrono::steady_clock::time_point stream_since_;
  std::chrono::steady_clock::time_point lap_begin_;
  uint64_t stream_nanos_ = 0;  // spent on the request whose reply it is
  uint64_t paused_at_ = 0;     // ClientPause::word() that holds the next request up; 0: none
  RoomWait room_wait_;
  std::optional<ChangeWait> change_wait_;  // of stream_
  uint32_t executions_ = 0;                // of whole batches on the loop, to measure some of them
  bool stream_began_ = false;              // it has written something
  bool slice_spent_ = false;
  bool broken_ = false;
  bool needs_pool_ = false;  // the next request has to do with too large a value for a loop
  bool continued_ = false;
  bool maintenance_refused_ = false;
  size_t refused_at_ = SIZE_MAX;  // the request of RefuseNext()
  bool sets_apart_ = false;       // together the plain SETs were refused
  bool stream_shown_ = false;     // MONITOR has shown the request of stream_
};

// Answers the batches that one round of an I/O loop executes on the loop's own thread. It joins
// small batches that are GETs alone, or plain SETs alone, to runs across connections; then each
// batch that is left runs by itself. Without pipelines joint runs serve 17 % more requests
// (docs/decisions/0041).
class RoundExecutor {
 public:
  explicit RoundExecutor(ServerState* server) : server_(server) {}

  // Executes the batches, each as far as it goes in this round; progress() of each says whether it
  // is done. Returns whether something was submitted to the store. Requires: each batch is placed
  // here, and BeginReplies() was called for it.
  [[nodiscard]] bool Execute(absl::Span<BatchExecutor* const> batches);

 private:
  void Join(RequestRun::Kind kind, absl::Span<BatchExecutor* const> batches);
  void ExecuteJoint(RequestRun* run, RequestRun::Kind kind);

  ServerState* const server_;
  uint32_t joint_reads_ = 0;
};

}  // namespace varve
