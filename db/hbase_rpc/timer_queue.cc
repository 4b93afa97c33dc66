#include "db/hbase_rpc/timer_queue.h"

namespace varve {

TimerQueue::Id TimerQueue::At(Time time, Action action) {
  const Id id(time, ++last_number_);
  actions_.emplace(id, std::move(action));
  Arm();
  return id;
}

void TimerQueue::Cancel(const Id& id) { actions_.erase(id); }

void TimerQueue::Clear() {
  actions_.clear();
  timer_.cancel();
}

// A timer that is armed for a time before the first action's is left alone: when it fires and
// nothing is due, it is armed anew. So adding and cancelling mostly leaves the timer as it is.
void TimerQueue::Arm() {
  if (actions_.empty() || actions_.begin()->first.first >= armed_for_) return;
  armed_for_ = actions_.begin()->first.first;
  timer_.expires_at(armed_for_);
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    armed_for_ = Time::max();
    RunDue();
  });
}

void TimerQueue::RunDue() {
  const Time now = std::chrono::steady_clock::now();
  while (!actions_.empty() && actions_.begin()->first.first <= now) {
    auto first = actions_.extract(actions_.begin());
    first.mapped()();
  }
  Arm();
}

}  // namespace varve
