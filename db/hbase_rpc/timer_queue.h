// TimerQueue runs actions at given times, all of them on one timer of asio, so that thousands of
// calls with deadlines cost a tree and not a timer each.
//
// Thread-safety: The thread that runs the io_context alone uses an object.
// Invariants: An action runs once at most, never inside of At(), and not after it was cancelled.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace varve {

class TimerQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Action = std::function<void()>;
  // Names an action; the default names none.
  using Id = std::pair<Time, uint64_t>;

  explicit TimerQueue(asio::io_context& context) : timer_(context) {}
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;

  Id At(Time time, Action action);
  void Cancel(const Id& id);
  // Forgets every action.
  void Clear();

 private:
  void Arm();
  void RunDue();

  asio::steady_timer timer_;
  std::map<Id, Action> actions_;
  uint64_t last_number_ = 0;
  Time armed_for_ = Time::max();
};

}  // namespace varve
