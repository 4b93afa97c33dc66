// Executes a batch of requests against the store, in order, in as many steps as its replies take.
// Consecutive GETs are read together at one snapshot, consecutive plain SETs are committed
// together: nobody can tell, and it costs a fraction. Used by one thread at a time, not always the
// same; scratch memory belongs to the thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "server/clients/gated_replies.h"
#include "server/execution/command_context.h"
#include "server/requests/command.h"
#include "server/requests/request_batch.h"

namespace varve {

class BatchExecutor {
 public:
  enum class Progress { kDone, kMore };

  // Both outlive the executor.
  BatchExecutor(ServerState* server, ClientState* client) : server_(server), client_(client) {}

  // `batch` stays in place until Run() has returned kDone.
  void Begin(const RequestBatch* batch);

  // From now on the batch's commands for maintenance answer an error.
  void RefuseMaintenance() { maintenance_refused_ = true; }
  // The next Run() may be a long time away: gives back what would keep files and memory of the
  // store in use.
  void Rest() {
    if (stream_ != nullptr) stream_->Rest();
  }

  // Goes on until the batch is done, about `budget` bytes of replies were written to `*replies`,
  // others should get their turn, or the next request has to do with a value of more than
  // `most_here` bytes.
  Progress Run(GatedReplies* replies, size_t budget, size_t most_here);

  // In the place of Run(): the batch's requests, all GETs, were read as `results`, in `nanos_each`
  // for each of them.
  void AnswerGets(GatedReplies* replies, const absl::Status& status,
                  absl::Span<MultiGetResult> results, uint64_t nanos_each);
  // In the place of Run(): the batch's requests, all plain SETs, were committed.
  void AnswerSets(GatedReplies* replies, const absl::StatusOr<CommitResult>& committed,
                  uint64_t nanos_each);

  // Something was submitted in the last Run(): push the store before replies leave.
  bool submitted() const { return submitted_; }
  // A reply broke off, or the peer doesn't speak the protocol: close the connection without further
  // replies.
  bool broken() const { return broken_; }
  // Part of a reply was handed out and the rest is still to come.
  bool inside_reply() const { return stream_ != nullptr && stream_began_; }
  // Run() has returned kMore because its time was spent.
  bool slice_spent() const { return slice_spent_; }
  // Since when a reply is being produced that holds a snapshot; nothing when there is none.
  std::optional<std::chrono::steady_clock::time_point> streaming_since() const {
    if (stream_ == nullptr) return std::nullopt;
    return stream_since_;
  }
  // Run() has returned kMore because of a value of more than `most_here` bytes.
  bool elsewhere() const { return elsewhere_; }
  // Run() has executed a part of this batch.
  bool continued() const { return continued_; }

 private:
  // Each executes requests from next_ on, and returns how many: none when the next belongs
  // elsewhere.
  size_t RunGets(CommandContext* context, GatedReplies* replies);
  void WriteGets(CommandContext* context, GatedReplies* replies, const absl::Status& status,
                 absl::Span<MultiGetResult> results);
  void WriteSets(CommandContext* context, GatedReplies* replies,
                 const absl::StatusOr<CommitResult>& committed, size_t count);
  size_t RunSets(CommandContext* context, GatedReplies* replies);
  size_t RunOne(CommandContext* context, GatedReplies* replies);
  // Answers an error where the request is not to be executed. broken_: without an answer.
  bool Refuse(CommandContext* context, const RequestBatch::Request& request, Arguments arguments);
  // Goes on with stream_; false when there is more to come.
  bool RunStream(CommandContext* context, GatedReplies* replies, size_t budget);
  // What was written since `before` is the reply to a command, as far as the client wants it.
  void EndReply(CommandContext* context, GatedReplies* replies, size_t before);
  void ShowToMonitors(NamespaceId space, size_t first, size_t count);
  std::string_view KeyOf(size_t request) const {
    return batch_->arguments[batch_->requests[request].first + 1];
  }
  size_t RunLength(CommandKind kind, size_t arguments, size_t limit) const;
  // For the statistics: `count` requests from `first` on, neighbours of one kind, took `nanos`
  // together.
  void Account(size_t first, size_t count, uint64_t nanos);
  // For the statistics: whether the reply that begins at `begin` is an error. `command` is null for
  // an unknown one.
  void AccountReply(const Command* command, const GatedReplies& replies, size_t begin);

  ServerState* const server_;
  ClientState* const client_;
  const RequestBatch* batch_ = nullptr;
  size_t next_ = 0;
  std::unique_ptr<ReplyStream> stream_;
  std::chrono::steady_clock::time_point stream_since_;
  bool stream_began_ = false;  // it has written something
  bool slice_spent_ = false;
  uint64_t stream_nanos_ = 0;  // spent on the request whose reply it is
  bool submitted_ = false;
  bool broken_ = false;
  bool elsewhere_ = false;
  bool continued_ = false;
  bool maintenance_refused_ = false;
  bool sets_apart_ = false;  // together they were refused
};

}  // namespace varve
