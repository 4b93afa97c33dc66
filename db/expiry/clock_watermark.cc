#include "db/expiry/clock_watermark.h"

#include <algorithm>

#include "util/base/assert.h"

namespace varve {

SequenceNumber ClockWatermark::RecordExpirySeen(uint64_t expiry_ms) {
  VARVE_ASSERT(expiry_ms != 0);
  // A follower's marks come from its primary.
  if (log_.follows()) return log_.RequiredDurable(sequence_.load());
  if (expiry_ms > clock_.mark() && !log_.failed()) {
    if (submit_mark_(std::max(expiry_ms, clock_.NowMillis())).ok()) {
      ++marks_;
      log_->Push().IgnoreError();  // a reader that waits for the mark hears of it
    }
  }
  if (!log_.failed()) return log_.RequiredDurable(sequence_.load());
  // If the log does not take the mark, no promise holds for the next start, and nobody can wait for
  // a mark that was on its way.
  if (expiry_ms > clock_.mark()) clock_.Mark(std::max(expiry_ms, clock_.NowMillis()));
  return kNoSequence;
}

ExpiryRecorder ClockWatermark::Recorder(const ReadOptions& options,
                                        std::function<void()> note_failure) {
  return [this, waits = options.wait_until_durable, note_failure = std::move(note_failure)](
             uint64_t expiry_ms) -> absl::StatusOr<SequenceNumber> {
    const SequenceNumber required = RecordExpirySeen(expiry_ms);
    if (!waits || required == kNoSequence) return required;
    absl::Status waited = log_->WaitUntilDurable(required);
    if (waited.ok()) return required;
    note_failure();
    if (!log_.failed()) return waited;
    return kNoSequence;
  };
}

void ClockWatermark::NoteMarkLocked(SequenceNumber sequence, uint64_t instant_ms) noexcept {
  versions_.mutex().AssertHeld();
  VARVE_ASSERT(sequence > sequence_.load(std::memory_order_relaxed));
  sequence_.store(sequence);
  clock_.Mark(instant_ms);
}

}  // namespace varve
