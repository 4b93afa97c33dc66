// The log view shows the engine's parts how far the log is durable, and whether it has failed. A
// failure is final: from then on the engine shows only what is durable and refuses writes.
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

  // Returns the durable-after sequence of a result that depends on the writes up to `sequence`: the
  // lower of `sequence` and the sequence of the last write with Durability::kAlways. Returns
  // kNoSequence if that is durable already.
  SequenceNumber RequiredDurable(SequenceNumber sequence) const {
    const SequenceNumber required = std::min(sequence, log_->last_always_sequence());
    return required > log_->durable_sequence() ? required : kNoSequence;
  }

 private:
  std::unique_ptr<Log> log_;
  std::atomic<bool> failed_{false};
};

}  // namespace varve
