// The outcome of a request beside the bytes of its reply: what the reply waits for, whether there
// is one, whether more of it follows as a stream, and whether the request has to be executed on
// another thread instead. The handler sets it, the executor takes it.
//
// Thread-safety: one thread at a time uses an outcome.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "varve/types.h"

namespace varve {

class CommandContext;

// A reply that is produced in slices, so that its length is not bounded by memory.
class ReplyStream {
 public:
  enum class Progress {
    kMore,
    kDone,
    kBroken,  // an error after the reply began: only closing the connection can tell the client
  };
  virtual ~ReplyStream() = default;
  // Writes about `budget` bytes more. It may write nothing yet (kMore): if it works for long, it
  // ends when CommandContext::SliceSpent().
  virtual Progress Produce(CommandContext& context, size_t budget) = 0;
  // Gives back what would keep files and memory of the store in use. Called when the client takes
  // nothing at present.
  virtual void Rest() {}
  // Returns whether MONITOR may show the command now. EXEC comes behind the commands that it
  // executes.
  virtual bool MayBeShown() const { return true; }
};

// The wait of a reply for the next commit: until ChangeWaiters::word() is another one, or until an
// instant (nothing: there is none) has come.
struct ChangeWait {
  uint64_t word = 0;
  std::optional<std::chrono::steady_clock::time_point> until;
};

class ReplyOutcome {
 public:
  // The reply must not leave before `durable_after` is durable.
  void DependOn(SequenceNumber durable_after) {
    if (durable_after > durable_after_) durable_after_ = durable_after;
  }
  SequenceNumber durable_after() const { return durable_after_; }
  SequenceNumber TakeDurableAfter() { return std::exchange(durable_after_, kNoSequence); }

  // Has the executor execute the request anew on the pool, where large values and waits do no harm.
  // The bytes that it has written so far are not sent. Requires: it has changed nothing.
  void MoveToPool() { needs_pool_ = true; }
  bool needs_pool() const { return needs_pool_; }

  // The request waits for EXEC; its reply says so.
  void NotExecuted() { executed_ = false; }
  bool TakeExecuted() { return std::exchange(executed_, true); }

  // There is no reply at all.
  void NoReply() { silent_ = true; }
  bool TakeSilent() { return std::exchange(silent_, false); }
  // The reply leaves even if CLIENT REPLY keeps replies back.
  void Pushed() { pushed_ = true; }
  bool TakePushed() { return std::exchange(pushed_, false); }

  // The rest of the reply comes from `stream`.
  void Stream(std::unique_ptr<ReplyStream> stream) { stream_ = std::move(stream); }
  std::unique_ptr<ReplyStream> TakeStream() { return std::move(stream_); }

  // The stream that is being produced has written nothing yet and goes on after the wait, for which
  // no thread waits. Requires: EXEC does not execute the command.
  void AwaitChanges(ChangeWait wait) { change_wait_ = wait; }
  std::optional<ChangeWait> TakeChangeWait() { return std::exchange(change_wait_, std::nullopt); }

  // There is no reply: the connection closes once those before it have left.
  void CloseWithoutReply() { closes_ = true; }
  bool closes() const { return closes_; }

 private:
  SequenceNumber durable_after_ = kNoSequence;
  std::unique_ptr<ReplyStream> stream_;
  std::optional<ChangeWait> change_wait_;
  bool needs_pool_ = false;
  bool executed_ = true;
  bool silent_ = false;
  bool pushed_ = false;
  bool closes_ = false;
};

}  // namespace varve
