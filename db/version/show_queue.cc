#include "db/version/show_queue.h"

#include <utility>

#include "util/base/assert.h"
#include "util/base/spin.h"

namespace varve {

ShowQueue::ShowQueue(std::atomic<SequenceNumber>* visible) : visible_(visible) {
  places_[0].finished.store(turn(), std::memory_order_relaxed);
}

void ShowQueue::EnterLocked(Batch* batch) {
  VARVE_ASSERT(batch->last_ > last_);
  // Besides the batches' places, the one behind them may be in use: it may get the turn.
  if (entered_ - shown_.load(std::memory_order_acquire) + 2 > kPlaces) DrainLocked();
  batch->place_ = entered_++;
  last_ = batch->last_;
}

void ShowQueue::EnterAsLeaderLocked(Batch* batch) {
  VARVE_ASSERT(own_ == nullptr);
  EnterLocked(batch);
  own_ = batch;
}

ShowQueue::Batch* ShowQueue::TakeOwnLocked() { return std::exchange(own_, nullptr); }

void ShowQueue::DrainLocked() {
  if (Batch* const own = TakeOwnLocked(); own != nullptr) Finish(own);
  const int spins = SpinsBeforeSleep();
  for (int i = 0; visible_->load(std::memory_order_acquire) < last_; ++i) {
    if (i < spins) {
      SpinPause();
      continue;
    }
    somebody_drains_.store(true);
    const SequenceNumber visible = visible_->load();
    if (visible < last_) visible_->wait(visible);
    somebody_drains_.store(false);
  }
}

void ShowQueue::Finish(Batch* batch) {
  batch->Apply();
  std::atomic<Batch*>& finished = At(batch->place_).finished;
  // Nobody takes the turn away from the thread that has it.
  if (finished.load(std::memory_order_acquire) != turn() &&
      finished.exchange(batch, std::memory_order_acq_rel) != turn()) {
    // Whoever shows the batch before this one shows this one, too.
    batch->shown_.Await();
    return;
  }
  const Batch* const own = batch;
  do {
    const uint64_t next = batch->place_ + 1;
    batch->buffer_->Append(batch->records_);
    MoveVisible(batch->last_);
    At(batch->place_).finished.store(nullptr, std::memory_order_relaxed);
    shown_.store(next, std::memory_order_release);
    if (batch != own) batch->shown_.Tell(kShown);
    batch = At(next).finished.exchange(turn(), std::memory_order_acq_rel);
  } while (batch != nullptr);
}

void ShowQueue::ShowLocked(SequenceNumber last) {
  VARVE_ASSERT(visible_->load() >= last_);
  visible_->store(last);
}

void ShowQueue::MoveVisible(SequenceNumber last) {
  VARVE_ASSERT(visible_->load(std::memory_order_relaxed) < last);
  visible_->store(last);
  if (somebody_drains_.load()) [[unlikely]]
    visible_->notify_all();
}

}  // namespace varve
