#include "db/version/show_queue.h"

#include <thread>
#include <utility>

#include "util/base/assert.h"
#include "util/base/spin.h"

namespace varve {

ShowQueue::ShowQueue(std::atomic<SequenceNumber>* visible) : visible_(visible) {
  places_[0].state.store(kTurn, std::memory_order_relaxed);
}

void ShowQueue::EnterLocked(Batch* batch) {
  VARVE_ASSERT(batch->last_ > last_);
  // Besides the batches' places, the one behind them may be in use: it may get the turn.
  if (entered_ - shown_before_ + 2 > kPlaces) {
    shown_before_ = shown_.load(std::memory_order_acquire);
    if (entered_ - shown_before_ + 2 > kPlaces) DrainLocked();
  }
  batch->place_ = entered_++;
  last_ = batch->last_;
}

void ShowQueue::OfferLocked(Batch* batch) {
  VARVE_ASSERT(offered_ == nullptr);
  if (!Offer(batch)) offered_ = batch;
}

ShowQueue::Batch* ShowQueue::TakeOfferedLocked() { return std::exchange(offered_, nullptr); }

void ShowQueue::DrainLocked() {
  if (Batch* const offered = TakeOfferedLocked(); offered != nullptr) Await(offered);
  while (!SpinUntil([&] { return visible_->load(std::memory_order_acquire) >= last_; })) {
    awaited_.store(last_);
    const SequenceNumber visible = visible_->load();
    if (visible < last_) visible_->wait(visible);
    awaited_.store(kMaxSequence);
  }
}

bool ShowQueue::Offer(Batch* batch) {
  batch->Apply();
  const uint64_t place = batch->place_;
  Place& at = At(place);
  at.buffer = batch->buffer_;
  at.records = batch->records_;
  at.last = batch->last_;
  // Nobody takes the turn away from the thread that has it.
  if (at.state.load(std::memory_order_acquire) != kTurn &&
      at.state.exchange(Finished(place), std::memory_order_acq_rel) != kTurn)
    return false;
  ShowFrom(place);
  return true;
}

bool ShowQueue::AwaitShown(Batch* batch) {
  const uint64_t place = batch->place_;
  std::atomic<uint64_t>& state = At(place).state;
  uint64_t now = kUnfinished;
  bool is_shown = false;
  const auto is_done = [&] {
    // In this order: the place is another batch's once this one is shown.
    now = state.load(std::memory_order_acquire);
    is_shown = shown_.load(std::memory_order_acquire) > place;
    return is_shown || now == kYouShow;
  };
  while (!SpinUntil(is_done)) {
    // Where it is not merely finished any more, whoever shows it has taken it.
    if (now != Finished(place)) {
      std::this_thread::yield();
      continue;
    }
    const auto asleep = reinterpret_cast<uint64_t>(&batch->shown_);
    if (state.compare_exchange_strong(now, asleep, std::memory_order_acq_rel))
      return batch->shown_.Await() == kShown;
  }
  return is_shown;
}

void ShowQueue::ShowFrom(uint64_t place) {
  std::array<HandOver*, kShownAtOnce> asleep;
  uint64_t first = place;  // of those that are not visible yet
  const uint64_t end = place + kMostShown;
  size_t sleepers = 0;
  for (HandOver* sleeper = nullptr;;) {
    Place& at = At(place);
    at.buffer->Append(at.records);
    const SequenceNumber last = at.last;
    at.state.store(kUnfinished, std::memory_order_relaxed);
    if (sleeper != nullptr) asleep[sleepers++] = sleeper;
    std::atomic<uint64_t>& next = At(++place).state;
    const bool ends = place == end || next.load(std::memory_order_acquire) == kUnfinished;
    // What is shown is visible before another thread may show.
    if (ends || place - first == kShownAtOnce) {
      MoveVisible(last);
      shown_.store(place, std::memory_order_release);
      for (size_t i = 0; i < sleepers; ++i) asleep[i]->Tell(kShown);
      first = place;
      sleepers = 0;
    }
    const uint64_t state = next.exchange(kTurn, std::memory_order_acq_rel);
    if (state == kUnfinished) return;
    sleeper = IsAsleep(state) ? reinterpret_cast<HandOver*>(state) : nullptr;
    if (place != end) continue;
    if (sleeper != nullptr) return sleeper->Tell(kShows);
    return next.store(kYouShow, std::memory_order_release);
  }
}

void ShowQueue::ShowLocked(SequenceNumber last) {
  VARVE_ASSERT(visible_->load() >= last_);
  visible_->store(last);
}

void ShowQueue::MoveVisible(SequenceNumber last) {
  VARVE_ASSERT(visible_->load(std::memory_order_relaxed) < last);
  visible_->store(last);
  if (awaited_.load() <= last) [[unlikely]]
    visible_->notify_all();
}

}  // namespace varve
