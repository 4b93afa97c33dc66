// The log view shows the engine's parts how far the log is durable, whether it has failed, and who
// writes to it. A failure is final: from then on the engine shows only what is durable and refuses
// writes.
//
// Where followers have to have a write, too, before it counts as durable, the server bounds
// durable_sequence() by what they have (varve/replication.h). The log's own sequence goes on.
//
// Thread-safety: all functions but Start() may be called on any thread.
// Invariants: once failed() is true it stays so.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "db/log/log.h"
#include "util/base/assert.h"
#include "varve/types.h"

namespace varve {

class LogView {
 public:
  LogView() = default;
  LogView(const LogView&) = delete;
  LogView& operator=(const LogView&) = delete;

  // Requires: no other thread uses the view yet. Recovery runs before this call.
  void Start(std::unique_ptr<Log> log) {
    VARVE_ASSERT(log_ == nullptr && log != nullptr);
    log_ = std::move(log);
  }
  bool started() const { return log_ != nullptr; }

  // Requires: started().
  Log* operator->() const { return log_.get(); }
  Log* get() const { return log_.get(); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Notes a failure of the log, if there was one. Returns true to the first caller that notices it.
  bool NoteFailure() { return !failed_.load() && !log_->status().ok() && !failed_.exchange(true); }

  // Returns the last write that is durable, here and where else it has to be.
  SequenceNumber durable_sequence() const { return std::min(log_->durable_sequence(), bound()); }
  // No write behind the bound is durable; kMaxSequence: there is no bound.
  SequenceNumber bound() const { return bound_.load(std::memory_order_acquire); }
  void SetBound(SequenceNumber bound) { bound_.store(bound, std::memory_order_release); }

  // Returns whether the store takes the batches of a primary, and no others.
  bool follows() const { return follows_.load(std::memory_order_acquire); }
  void SetFollows(bool follows) { follows_.store(follows, std::memory_order_release); }

  // Returns the durable-after sequence of a result that depends on the writes up to `sequence`: the
  // lower of `sequence` and the sequence of the last write with Durability::kAlways. Returns
  // kNoSequence if that is durable already.
  SequenceNumber RequiredDurable(SequenceNumber sequence) const {
    const SequenceNumber required = std::min(sequence, log_->last_always_sequence());
    return required > durable_sequence() ? required : kNoSequence;
  }

 private:
  std::unique_ptr<Log> log_;
  std::atomic<bool> failed_{false};
  std::atomic<SequenceNumber> bound_{kMaxSequence};
  std::atomic<bool> follows_{false};
};

}  // namespace varve
