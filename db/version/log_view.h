// The log view is the log as the engine's parts see it: how far it is durable, and whether it has
// failed. The log fails for good: from then on reads show only what is durable and writes are
// refused.
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

  // Requires: no other thread uses the view yet; recovery does without a log.
  void Start(std::unique_ptr<Log> log) {
    VARVE_ASSERT(log_ == nullptr && log != nullptr);
    log_ = std::move(log);
  }
  bool started() const { return log_ != nullptr; }

  // Requires: started().
  Log* operator->() const { return log_.get(); }
  Log* get() const { return log_.get(); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  // Remembers that the log has failed, if it has. Returns true to the one caller that is the first
  // to notice it.
  bool NoteFailure() { return !failed_.load() && !log_->status().ok() && !failed_.exchange(true); }

  // Returns the sequence that must be durable before a result may leave the library that depends on
  // everything up to `sequence`: that of the last write among it, or behind it, that readers wait
  // for. kNoSequence: the result may leave at once.
  SequenceNumber RequiredDurable(SequenceNumber sequence) const {
    const SequenceNumber required = std::min(sequence, log_->last_always_sequence());
    return required > log_->durable_sequence() ? required : kNoSequence;
  }

 private:
  std::unique_ptr<Log> log_;
  std::atomic<bool> failed_{false};
};

}  // namespace varve
