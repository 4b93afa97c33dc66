// Replies made of commits of the change feed. A reply is collected in slices until it has what was
// asked for, or all that can be delivered; if that is nothing, and the client said BLOCK, the
// request waits for the next commit, and no thread waits with it.
//
// Thread-safety: one thread at a time uses a stream.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "server/execution/command_context.h"
#include "server/feed/change_request.h"
#include "server/feed/change_writer.h"
#include "server/feed/visible_changes.h"

namespace varve {

// The place where a reader of the feed begins, and what the store filters for it.
struct ChangeStart {
  SequenceNumber since = kNoSequence;
  SequenceNumber last = kMaxSequence;  // commits behind it are not looked at
  ChangeFilter filter;
};

// Returns the error of a store that retains no changes, with the settings that make it do so, or
// with its lack if it is of a kind that never does; other statuses as they are.
absl::Status ExplainNoChanges(const Store& store, const absl::Status& status);

// Finds where the request begins. False: it can't, and the error was answered.
[[nodiscard]] bool FindChangeStart(CommandContext& context, const ChangeRequest& request,
                                   ChangeStart* start);

// Returns what the client's user may see of the range.
VisibleChanges ChangesForClient(const CommandContext& context, Arguments request, KeyRange range);

class ChangeStream : public ReplyStream {
 public:
  static constexpr size_t kMostBytes = 1u << 20;  // of a reply that no COUNT makes longer
  static constexpr size_t kMostCommits = 1000;

  // Requires: the arguments stay in place until the batch is done.
  ChangeStream(const CommandContext& context, Arguments arguments, ChangeStart start,
               const ChangeRequest& request);

  Progress Produce(CommandContext& context, size_t budget) override;
  void Rest() override { iterator_.reset(); }

 protected:
  // Adds a commit of which something is shown to the reply. Returns whether that is enough.
  [[nodiscard]] virtual bool Add(const Change& change,
                                 absl::Span<const ShownOperation> operations) = 0;
  // Returns whether there is nothing that may be answered when a later commit can't be read.
  virtual bool empty() const = 0;
  // All commits in (`start->since`, `start->last`] were looked at, or Add() had enough. Returns
  // true if the reply needs others, and stores in `*start` which.
  [[nodiscard]] virtual bool BeginPart(ChangeStart* /*start*/) { return false; }
  // Writes the reply. `position`: everything up to there was looked at.
  virtual void Answer(CommandContext& context, SequenceNumber position) = 0;

  const ChangeRequest& request() const { return request_; }

 private:
  enum class Found { kAll, kSliceSpent, kFailed };

  Progress ProduceNext(CommandContext& context);
  // CLIENT UNBLOCK has ended the wait: answers.
  void AnswerUnblocked(CommandContext& context);
  // Goes on until the reply is complete.
  Found Collect(CommandContext& context);
  // Returns whether the client still has the right to the feed; if not, that was answered.
  std::optional<Progress> RefusedMeanwhile(CommandContext& context);

  const Arguments arguments_;
  const ChangeRequest request_;
  ChangeStart start_;  // its `since` moves on
  VisibleChanges visible_;
  std::optional<std::chrono::steady_clock::time_point> until_;
  bool waited_ = false;
  uint64_t word_ = 0;
  std::unique_ptr<ChangeIterator> iterator_;
};

// CHANGES: [history-id, next, first, [[version, ms, operations], ...]].
class CommitStream final : public ChangeStream {
 public:
  CommitStream(CommandContext& context, Arguments arguments, ChangeStart start,
               const ChangeRequest& request)
      : ChangeStream(context, arguments, std::move(start), request),
        writer_(context.server.store, request.with_previous, request.full),
        reply_(&collected_, context.client.protocol) {}

 private:
  bool Add(const Change& change, absl::Span<const ShownOperation> operations) override;
  bool empty() const override { return commits_ == 0; }
  void Answer(CommandContext& context, SequenceNumber position) override;

  ChangeWriter writer_;
  ByteBuffer collected_;
  RespWriter reply_;
  size_t commits_ = 0;
};

// Writes the first three elements of CHANGES' reply, of as many as it has. False: the error was
// answered.
[[nodiscard]] bool WriteChangesHead(CommandContext& context,
                                    std::optional<SequenceNumber> position);

}  // namespace varve
