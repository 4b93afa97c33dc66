// The clock watermark records in the log how far the store's clock has been seen, as the rule of
// db/expiry/store_clock.h asks: a reader that finds a key expired leaves a mark, and its result
// depends on the mark as it would on a write.
//
// Thread-safety: all functions but Start() may be called on any thread. NoteMarkLocked() needs the
// commit lock.
// Invariants: the sequence of a mark is stored before the clock shows the mark, so a reader that
// sees the mark sees the sequence that it depends on.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "db/expiry/store_clock.h"
#include "db/iterators/store_iterator.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/options.h"

namespace varve {

class ClockWatermark {
 public:
  ClockWatermark(SuperVersions* versions, LogView* log, StoreClock* clock)
      : versions_(*versions), log_(*log), clock_(*clock) {}

  // `submit_mark` commits a mark of the clock at the instant.
  // Requires: no other thread uses the watermark yet.
  void Start(std::function<absl::Status(uint64_t instant_ms)> submit_mark) {
    submit_mark_ = std::move(submit_mark);
  }

  // Leaves a mark for a reader that has found something which expired at `expiry_ms`, unless there
  // is a mark that is as late. Returns the sequence that must be durable before the engine may
  // answer with what the reader found.
  SequenceNumber RecordExpirySeen(uint64_t expiry_ms);
  // Returns RecordExpirySeen() for iterators; with options.wait_until_durable it waits for the
  // sequence. `note_failure` is told when the wait fails.
  ExpiryRecorder Recorder(const ReadOptions& options, std::function<void()> note_failure);

  // Notes a mark that was committed, or replayed from the log.
  void NoteMarkLocked(SequenceNumber sequence, uint64_t instant_ms) noexcept;

  // Returns how many marks readers have left.
  uint64_t marks() const { return marks_.load(std::memory_order_relaxed); }

 private:
  SuperVersions& versions_;
  LogView& log_;
  StoreClock& clock_;
  std::function<absl::Status(uint64_t)> submit_mark_;
  std::atomic<SequenceNumber> sequence_{kNoSequence};  // of the newest mark
  std::atomic<uint64_t> marks_{0};
};

}  // namespace varve
